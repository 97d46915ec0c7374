/** One POST over a connection that is kept: its status, and the first words of a body that nobody asked for. */
import { type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'

export interface Answer {
  readonly status: number
  readonly retryAfter?: string
  readonly date?: string
  /** Of a refusal: at most so much, as text. */
  readonly excerpt: string
}

export interface Agents {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

export interface Posted {
  readonly answer: Promise<Answer>
  /** Breaks the connection off. */
  cancel(reason: unknown): void
}

const EXCERPT_BYTES = 256
/** Beyond this a body is not worth reading to its end, even for the sake of the connection. */
const MAX_BODY_BYTES = 65_536

/** A URL in the words of `node:http`, read once for all that is sent there. */
export interface Address {
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  readonly path: string
  /** What is asked for in the handshake: no IP addresses. */
  readonly servername: string
}

export function addressOf(url: URL): Address {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return { isSecure, host, port, path: url.pathname + url.search, servername: isIP(host) === 0 ? host : '' }
}

/** Headers are a list, name and value in turns: so they are written as they are, and not gathered in a map before. */
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
      // Whose status is known has answered, however much of its body is still to come.
      if (!isAnswered) reject(reason)
      request.destroy()
    }
    request.on('error', (error) => reject(Object.assign(error, { reusedSocket: request.reusedSocket })))
    request.on('response', (response) => {
      isAnswered = true
      hear(response, resolve)
    })
    // As text: then headers and body leave in one write.
    request.end(body, 'utf8')
  })
  return { answer, cancel: (reason) => cancel(reason) }
}

/** The status decides; the body is read so that the connection can be used again, as far as it is worth it. */
function hear(response: IncomingMessage, resolve: (answer: Answer) => void): void {
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
