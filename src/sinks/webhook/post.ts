/** One POST over a keep-alive connection. Returns the status, and the beginning of a refusal's body. */
import { type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'

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
  /** Closes the connection. */
  cancel(reason: unknown): void
}

const EXCERPT_BYTES = 256
/** A body larger than this is not read to its end, although the connection then cannot be reused. */
const MAX_BODY_BYTES = 65_536

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
    // The body is a string, so that Node sends headers and body in one write.
    request.end(body, 'utf8')
  })
  return { answer, cancel: (reason) => cancel(reason) }
}

/** Reads the body to its end, within a limit, so that the connection can be reused. */
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
  response.on('data', (chunk: Buffer) => {
    if (isRefusal && bytes < EXCERPT_BYTES) first.push(chunk.subarray(0, EXCERPT_BYTES - bytes))
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) response.destroy()
  })
  response.on('end', done)
  response.on('error', done)
  response.on('close', done)
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
