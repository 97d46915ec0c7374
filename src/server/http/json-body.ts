/** Reads a body as JSON, within bounds that hold before anything is built from it. */
import { systemClock } from '../../core/clock.js'
import { Problem, problem } from './problem.js'

const MAX_DEPTH = 64
const UTF8 = new TextDecoder('utf-8', { fatal: true })

interface BodyReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
}

/** What a body may be, and how long it may take to arrive. */
export interface BodyLimits {
  readonly bodyBytes: number
  readonly bodyMs: number
}

/** The body as JSON; an empty object when it is empty and may be. */
export async function readJson(request: Request, limits: BodyLimits, optional: boolean): Promise<unknown> {
  return meant(await readText(request, limits), request, optional)
}

/** The same for a body that was read before. */
export function jsonOf(
  bytes: Uint8Array,
  request: Request,
  { bodyBytes: maxBytes }: BodyLimits,
  optional: boolean,
): unknown {
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes)
  return meant(decoded(bytes), request, optional)
}

function meant(text: string, request: Request, optional: boolean): unknown {
  if (text.trim() === '' && optional) return {}
  checkType(request)
  return parseJson(text, 'the body')
}

/** JSON without keys that reach for prototypes, and not so deep that walking it could exhaust the stack. */
export function parseJson(text: string, what: string): unknown {
  const depth = depthOf(text)
  if (depth > MAX_DEPTH) {
    throw problem(422, 'PAYLOAD_INVALID', `${what} is nested ${depth} deep: at most ${MAX_DEPTH} are allowed`)
  }
  try {
    return text.includes('__proto__') || text.includes('\\u005f') || text.includes('\\u005F')
      ? JSON.parse(text, refusePrototype)
      : JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw problem(400, 'JSON_INVALID', `${what} is not JSON: ${error.message.slice(0, 200)}`)
  }
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw problem(422, 'PAYLOAD_INVALID', 'the key "__proto__" is refused')
  return value
}

/** How deep brackets are nested, outside of texts. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfText(text, at)
    else if (code === 0x5b || code === 0x7b) {
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (code === 0x5d || code === 0x7d) depth -= 1
  }
  return deepest
}

function endOfText(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let back = at - 1
    while (text.charCodeAt(back) === 0x5c) back -= 1
    if ((at - back) % 2 === 1) return at
  }
  return text.length
}

function checkType(request: Request): void {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type === 'application/json' || type?.endsWith('+json')) return
  throw problem(415, 'MEDIA_TYPE_UNSUPPORTED', `the body is "${(type ?? '').slice(0, 100)}"; send application/json`)
}

async function readText(request: Request, { bodyBytes: maxBytes, bodyMs }: BodyLimits): Promise<string> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > maxBytes) throw tooLarge(maxBytes)
  return decoded(await readBytes(request, length !== null, maxBytes, bodyMs))
}

function decoded(bytes: ArrayBuffer | Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch {
    throw problem(400, 'JSON_INVALID', 'the body is not UTF-8')
  }
}

/** A body whose length was announced, and is therefore bounded, is read in one go: that is much cheaper than a stream. */
async function readBytes(
  request: Request,
  isBounded: boolean,
  maxBytes: number,
  bodyMs: number,
): Promise<ArrayBuffer | Uint8Array> {
  if (isBounded) {
    const whole = await inTime(request.arrayBuffer(), bodyMs)
    if (whole.byteLength > maxBytes) throw tooLarge(maxBytes)
    return whole
  }
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  try {
    return await inTime(readParts(reader, maxBytes), bodyMs)
  } catch (error) {
    void reader.cancel().catch(() => {})
    throw error
  }
}

async function readParts(reader: BodyReader, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done || value === undefined) return Buffer.concat(parts)
    bytes += value.byteLength
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    parts.push(value)
  }
}

/** What it was too late for, and what broke off, is a problem of the sender's. */
function inTime<T>(body: Promise<T>, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = systemClock.after(withinMs, () => {
      reject(problem(408, 'BODY_TOO_SLOW', `the body, or more of it, was not there within ${withinMs / 1_000} s`))
    })
    body.then(
      (value) => {
        giveUp()
        resolve(value)
      },
      (error: unknown) => {
        giveUp()
        reject(error instanceof Problem ? error : brokenOff(error))
      },
    )
  })
}

/** A body in parts: as it comes, or whole where it was read before. */
export function bodyParts(
  { body }: Request,
  whole: Uint8Array | undefined,
  idleMs: number,
): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (whole !== undefined) return [whole]
  return body === null ? [] : arriving(body, idleMs)
}

/** A body as it comes. One that breaks off, or stands still for this long, is the sender's problem. */
async function* arriving(body: ReadableStream<Uint8Array>, idleMs: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), idleMs)
      if (done) return
      yield value
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

function brokenOff(cause: unknown) {
  return problem(400, 'BODY_INCOMPLETE', 'the body did not arrive whole', { cause })
}

function tooLarge(maxBytes: number) {
  return problem(413, 'BODY_TOO_LARGE', `the body is larger than ${maxBytes} bytes`, {
    hint: 'send many schedules as lines to /v1/schedules:import',
  })
}
