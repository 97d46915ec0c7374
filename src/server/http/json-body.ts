/** Reads a JSON body. Limits its size, its depth and the time in which it arrives, before parsing it. */
import { measureJson, numberAt } from '../../core/checks/json-text.js'
import { systemClock } from '../../core/clock.js'
import type { RequestInfo } from '../security/caller.js'
import { Problem, pointerOf, problem } from './problem.js'

const MAX_DEPTH = 64
/** Values cost time, not bytes: a body of the largest size may have one value for each 20 bytes, so 52,429 in 1 MiB. */
const BYTES_PER_VALUE = 20
const UTF8 = new TextDecoder('utf-8', { fatal: true })

interface BodyReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
}

export interface BodyLimits {
  readonly bodyBytes: number
  /** How long a body may take to arrive. */
  readonly bodyMs: number
}

/** Resolves to the body's text. */
export async function readBody(request: Request, { body }: RequestInfo, limits: BodyLimits): Promise<string> {
  return decode(body ?? (await readBytes(request, limits)), limits)
}

/** Parses the body's text. An empty optional body is an empty object. */
export function parseBody(request: Request, text: string, { bodyBytes }: BodyLimits, optional: boolean): unknown {
  if (optional && text.trim() === '') return {}
  checkType(request)
  return parseJson(text, 'the body', bodyBytes)
}

/**
 * Refuses the key `__proto__`, numbers that parsing would change, JSON of very many values, and JSON nested so deep that a
 * recursive walk could fail.
 */
export function parseJson(text: string, what: string, maxBytes: number): unknown {
  const { depth, values, inexactAt } = measureJson(text)
  const mostValues = Math.ceil(maxBytes / BYTES_PER_VALUE)
  if (depth > MAX_DEPTH) {
    throw problem(422, 'PAYLOAD_INVALID', `${what} is nested ${depth} deep: at most ${MAX_DEPTH} are allowed`)
  }
  if (values > mostValues) {
    throw problem(422, 'PAYLOAD_INVALID', `${what} has ${values} values: at most ${mostValues} are allowed`)
  }
  const parsed = parseText(text, what)
  if (inexactAt !== undefined) throw inexact(text, inexactAt, what)
  return parsed
}

function parseText(text: string, what: string): unknown {
  try {
    return JSON.parse(text, MAY_SPELL_PROTOTYPE.test(text) ? refusePrototype : undefined)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw problem(400, 'JSON_INVALID', `${what} is not JSON: ${error.message.slice(0, 200)}`)
  }
}

/** Texts without this cannot have the key `__proto__`. Others are parsed with a reviver, which takes three times as long. */
const MAY_SPELL_PROTOTYPE = /__proto__|\\u00/

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw problem(422, 'PAYLOAD_INVALID', 'the key "__proto__" is refused')
  return value
}

function inexact(text: string, at: number, what: string): Problem {
  const { number, path } = numberAt(text, at)
  const message = `the number ${number.slice(0, 40)} cannot be held exactly`
  const pointer = pointerOf(path)
  return problem(422, 'NUMBER_INEXACT', `${pointer === '' ? what : pointer}: ${message}`, {
    errors: [{ pointer, message, code: 'NUMBER_INEXACT' }],
    hint: 'send it as text: JSON numbers are doubles here, which hold whole numbers up to 9007199254740991',
  })
}

function checkType(request: Request): void {
  const type = mediaType(request)
  if (type === 'application/json' || type.endsWith('+json')) return
  throw problem(415, 'MEDIA_TYPE_UNSUPPORTED', `the body is "${type.slice(0, 100)}"; send application/json`)
}

/** The Content-Type without its parameters; empty when there is none. */
export function mediaType(request: Request): string {
  return (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

function decode(bytes: Uint8Array, { bodyBytes: maxBytes }: BodyLimits): string {
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes)
  try {
    return UTF8.decode(bytes)
  } catch {
    throw problem(400, 'JSON_INVALID', 'the body is not UTF-8')
  }
}

async function readBytes(request: Request, { bodyBytes: maxBytes, bodyMs }: BodyLimits): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length')) > maxBytes) throw tooLarge(maxBytes)
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  try {
    return await withinTime(readParts(reader, maxBytes), bodyMs)
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

/** Rejects with a 4xx problem when the body is late or breaks off: both are the client's failure. */
function withinTime<T>(body: Promise<T>, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = systemClock.after(withinMs, () => {
      reject(problem(408, 'BODY_TOO_SLOW', `the body, or its next part, did not arrive within ${withinMs / 1_000} s`))
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

/** Yields the body part by part. Throws a problem when it breaks off, or when no part arrives for `idleMs`. */
export async function* bodyParts(
  { body }: Request,
  { body: whole }: RequestInfo,
  idleMs: number,
): AsyncGenerator<Uint8Array> {
  if (whole !== undefined) return yield whole
  if (body === null) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { value, done } = await withinTime(reader.read(), idleMs)
      if (done) return
      yield value
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

function brokenOff(cause: unknown) {
  return problem(400, 'BODY_INCOMPLETE', 'the connection broke off before the whole body had arrived', { cause })
}

function tooLarge(maxBytes: number) {
  return problem(413, 'BODY_TOO_LARGE', `the body is larger than ${maxBytes} bytes`, {
    hint: 'send many schedules as lines to /v1/schedules:import',
  })
}
