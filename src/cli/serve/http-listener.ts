/**
 * The HTTP server in front of the Fetch handler: timeouts of raw connections, and graceful shutdown.
 *
 * - A head that is late or malformed gets a one-line answer, and its connection is closed.
 * - A body that stalls is cut off. A body must also arrive within a limit, except for an import, which may take any time.
 * - A client must read its answers: a connection without traffic is closed, its next request waits until it has read the
 *   answer to the one before, and unread answers have a limit in all.
 * - The number of connections has a limit. Near it, idle ones are closed.
 * - Requests that arrive in one turn of the event loop are handled together, so that their writes share a transaction
 *   (bench `api`, create on SQLite: 2.5 times the rate).
 * - `close` accepts no more connections, finishes the requests in flight, and answers them with `Connection: close`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers'
import { getRequestListener } from '@hono/node-server'
import { DEFAULTS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { problem, problemResponse } from '../../server/http/problem.js'
import type { RequestInfo } from '../../server/index.js'
import type { AddressOf } from './client-address.js'
import { ConnectionTurns } from './connection-turns.js'
import { UnreadAnswers } from './unread-answers.js'

export interface HttpListenerOptions {
  readonly fetch: (request: Request, info: RequestInfo) => Response | Promise<Response>
  readonly addressOf: AddressOf
  readonly timings?: Partial<Timings>
  /** Default 2,000. */
  readonly maxConnections?: number
}

export interface Timings {
  /** How long the head of a request may take to arrive. */
  readonly headMs: number
  /** How long a whole body may take to arrive, unless it is an import. */
  readonly bodyMs: number
  /** The longest pause in a body. */
  readonly idleMs: number
  /** The longest time without traffic on a connection; longer than the longest wait of a request. */
  readonly stillMs: number
}

const TIMINGS: Timings = { headMs: 10_000, bodyMs: 30_000, idleMs: 15_000, stillMs: 120_000 }
/** Longer than the keep-alive of most proxies: the proxy closes first, and never sends into a connection closed here. */
const KEEP_ALIVE_MS = 75_000
const MAX_UNREAD_BYTES = 64 * 1_048_576
const UNREAD_WATCH_MS = 200
const STREAMS = /^[^?]*:import(\?|$)/

/** A body that is still arriving. */
interface Progress {
  readonly startedAt: number
  bytesRead: number
  progressAt: number
}

export class HttpListener {
  readonly #server: Server
  readonly #timings: Timings
  readonly #listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  readonly #inFlight = new Set<ServerResponse<IncomingMessage>>()
  /** Requests that arrived in the current turn of the event loop. */
  #arrived: ServerResponse<IncomingMessage>[] = []
  readonly #bodies = new WeakMap<IncomingMessage, Progress>()
  readonly #turns = new ConnectionTurns((response) => this.#arrive(response))
  readonly #unread = new UnreadAnswers(MAX_UNREAD_BYTES)
  #watches: NodeJS.Timeout[] = []
  #closing = false

  constructor(options: HttpListenerOptions) {
    const { fetch, addressOf, timings = {}, maxConnections = DEFAULTS.serve.maxConnections } = options
    this.#timings = { ...TIMINGS, ...timings }
    const { headMs, stillMs } = this.#timings
    this.#listener = getRequestListener(
      (request, { incoming }) => fetch(request, infoOf(incoming as IncomingMessage, addressOf)),
      { errorHandler: (error) => badRequest(error) },
    )
    this.#server = createServer(
      {
        ...{ headersTimeout: headMs, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS },
        connectionsCheckingInterval: Math.min(headMs, 1_000),
      },
      (_, response) => this.#begin(response),
    )
    // Closes the connection of a client that stops reading its answer, which frees the answer's memory.
    this.#server.timeout = stillMs
    this.#server.on('clientError', refuse)
    this.#server.maxConnections = maxConnections
    this.#server.on('connection', () => void this.#makeRoom(maxConnections))
    this.#server.on('drop', () => this.#server.closeIdleConnections())
  }

  /** The number of requests in flight. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(bindError(error, host, port)))
      this.#server.listen(port, host, resolve)
    })
    const { bodyMs, idleMs } = this.#timings
    this.#watches = [
      setInterval(() => this.#watchBodies(), Math.min(idleMs, bodyMs) / 4),
      setInterval(() => this.#unread.watch(this.#inFlight, performance.now()), UNREAD_WATCH_MS),
    ]
    return this.#server.address() as AddressInfo
  }

  /** Resolves when the last answer is sent, or after `patienceMs`. */
  async close(patienceMs: number): Promise<void> {
    this.#closing = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const response of this.#inFlight) response.shouldKeepAlive = false
    const timer = setTimeout(() => this.#server.closeAllConnections(), patienceMs)
    // One call is not enough: a connection that has sent no request yet becomes idle only after a while.
    const sweep = setInterval(() => this.#server.closeIdleConnections(), 50)
    await closed
    clearTimeout(timer)
    clearInterval(sweep)
    for (const watch of this.#watches) clearInterval(watch)
  }

  #begin(response: ServerResponse<IncomingMessage>): void {
    if (this.#closing) response.shouldKeepAlive = false
    this.#inFlight.add(response)
    response.on('close', () => this.#inFlight.delete(response))
    this.#turns.enter(response)
  }

  /** Near the limit, connections that wait for their next request are closed, so that new ones find a place. */
  #makeRoom(maxConnections: number): void {
    this.#server.getConnections((_, count) => {
      if (count >= maxConnections * 0.9) this.#server.closeIdleConnections()
    })
  }

  #arrive(response: ServerResponse<IncomingMessage>): void {
    if (this.#arrived.push(response) === 1) setImmediate(() => this.#handleArrived())
  }

  #handleArrived(): void {
    for (const response of this.#arrived.splice(0)) void this.#listener(response.req, response)
  }

  #watchBodies(): void {
    const now = performance.now()
    for (const response of this.#inFlight) {
      if (!response.req.complete && !response.req.destroyed) this.#watchBody(response, now)
    }
  }

  #watchBody(response: ServerResponse<IncomingMessage>, now: number): void {
    const { req: request } = response
    const { bytesRead } = request.socket
    const { bodyMs, idleMs } = this.#timings
    const body = this.#bodies.get(request)
    if (body === undefined) return void this.#bodies.set(request, { startedAt: now, bytesRead, progressAt: now })
    // Buffered bytes mean that the handler is slow, not the client.
    if (bytesRead > body.bytesRead || request.readableLength > 0) {
      body.bytesRead = bytesRead
      body.progressAt = now
    }
    const isLate = now - body.startedAt > bodyMs && !STREAMS.test(request.url ?? '')
    if (isLate || now - body.progressAt > idleMs) cutOff(request, response)
  }
}

/**
 * Passes on a body that arrived together with its head, as bytes. The route then need not wait for a stream, and all requests
 * of one turn write in one transaction (bench `api`, create on SQLite: 10 times the rate).
 */
function infoOf(request: IncomingMessage, addressOf: AddressOf): RequestInfo {
  const info = addressOf(request)
  if (!request.complete) return info
  const body = request.read() as Buffer | null
  return body === null ? info : { ...info, body }
}

/** Answers 408 and closes the connection. The handler that reads the body gets an error. */
function cutOff(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request
  if (!response.headersSent && socket.writable) {
    socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
  socket.destroySoon()
  request.destroy()
}

const STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const status = STATUS[error.code ?? ''] ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  socket.destroySoon()
}

/** Only for requests that cannot become a Fetch request: the app answers all others. */
function badRequest(error: unknown): Response {
  if (error instanceof Error && error.name === 'RequestError') {
    return problemResponse(problem(400, 'REQUEST_INVALID', 'the request line or the Host header is not well-formed'))
  }
  return problemResponse(problem(500, 'INTERNAL', 'an unexpected error in the service'))
}

function bindError(error: NodeJS.ErrnoException, host: string, port: number) {
  const where = `${host}:${port}`
  if (error.code === 'EADDRINUSE') {
    return failure('OPTION_INVALID', `${where} is in use by another program: choose another port with --port`)
  }
  if (error.code === 'EACCES')
    return failure('OPTION_INVALID', `no permission to listen on ${where}: ports below 1024 are reserved`)
  return failure('OPTION_INVALID', `cannot listen on ${where}: ${error.message}`, { cause: error })
}
