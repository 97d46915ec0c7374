/** One POST over a keep-alive connection. Returns the status as soon as it is known, and the beginning of a refusal's body. */
import { type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { systemClock } from '../../core/clock.js'

export interface Answer {
  readonly status: number
  readonly retryAfter?: string
  readonly date?: string
  /** The beginning of a refusal's body as text; empty on success. */
  readonly excerpt: string
}

export interface Agents {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

export interface Posted {
  readonly answer: Promise<Answer>
  cancel(reason: unknown): void
}

const EXCERPT_BYTES = 256
/** A body that is larger or slower is not read to its end, although the connection then cannot be reused. */
const MAX_BODY_BYTES = 16_384
const MAX_BODY_MS = 250
/** Answers with a status of 1xx that may come before the answer. */
const MAX_INTERIM = 10

/** The parts of a URL for `node:http`. */
export interface Address {
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  readonly path: string
  /** The name for TLS (SNI); empty for IP addresses. */
  readonly servername: string
}

export function addressOf(url: URL): Address {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return { isSecure, host, port, path: url.pathname + url.search, servername: isIP(host) === 0 ? host : '' }
}

/** Sends a POST. `headers` is a flat list of names and values, the raw form of `node:http`. */
export function post(to: Address, headers: readonly string[], body: string, agents: Agents): Posted {
  let cancel: Posted['cancel'] = () => {}
  const answer = new Promise<Answer>((resolve, reject) => {
    const { isSecure, host, port, path, servername } = to
    const request = (isSecure ? httpsRequest : httpRequest)({
      ...{ method: 'POST', host, port, path, servername, headers },
      agent: isSecure ? agents.https : agents.http,
    })
    let isAnswered = false
    cancel = (reason) => {
      // Once the status is known the receiver has answered, even if its body is still arriving.
      if (!isAnswered) reject(reason)
      request.destroy()
    }
    request.on('error', (error) => reject(Object.assign(error, { reusedSocket: request.reusedSocket })))
    request.on('response', (response) => {
      isAnswered = true
      readAnswer(response, resolve)
    })
    let interim = 0
    const countInterim = () => {
      interim += 1
      if (interim > MAX_INTERIM) request.destroy(new Error('it sends one 1xx answer after another, and no other'))
    }
    request.on('continue', countInterim)
    request.on('information', countInterim)
    request.on('upgrade', (_, socket) => {
      socket.destroy()
      reject(new Error('it answered 101 and switched to another protocol'))
    })
    // The body is a string, so that Node sends headers and body in one write.
    request.end(body, 'utf8')
  })
  return { answer, cancel: (reason) => cancel(reason) }
}

/**
 * The status is the outcome: only the excerpt of a refusal is waited for, and not for long. The rest of the body is read
 * within limits, so that the connection can be reused.
 */
function readAnswer(response: IncomingMessage, resolve: (answer: Answer) => void): void {
  const status = response.statusCode ?? 0
  const isRefusal = status < 200 || status > 299
  const first: Buffer[] = []
  let bytes = 0
  let isDone = false
  const done = () => {
    if (isDone) return
    isDone = true
    resolve(isRefusal ? refusal(response, status, Buffer.concat(first)) : { status, excerpt: '' })
  }
  const cancelDrain = systemClock.after(MAX_BODY_MS, () => response.destroy())
  response.on('data', (chunk: Buffer) => {
    if (isRefusal && bytes < EXCERPT_BYTES) first.push(chunk.subarray(0, EXCERPT_BYTES - bytes))
    bytes += chunk.length
    if (bytes >= EXCERPT_BYTES) done()
    if (bytes > MAX_BODY_BYTES) response.destroy()
  })
  response.on('end', done)
  response.on('error', done)
  response.on('close', () => {
    cancelDrain()
    done()
  })
  if (!isRefusal) done()
}

function refusal(response: IncomingMessage, status: number, body: Buffer): Answer {
  const { 'retry-after': retryAfter, date, 'content-encoding': encoding } = response.headers
  return {
    status,
    excerpt: encoding === undefined ? readable(body) : '',
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(date === undefined ? {} : { date }),
  }
}

function readable(body: Buffer): string {
  return body
    .toString('utf8')
    .replaceAll(/[\s\p{Cc}\p{Cf}\p{Cs}\uFFFD]+/gu, ' ')
    .trim()
}
