/**
 * HTTP in front of the Fetch handler: what a raw connection may do, how long it may take, and how it all ends.
 *
 * - A head that does not arrive in time, or is no HTTP, is answered in one line and the connection closed.
 * - A body must come steadily. One that makes no progress for a while is cut off, and one that is not a stream by nature
 *   must be there within a limit; an import may take as long as it likes.
 * - An answer must be read: a connection over which nothing goes any more is closed.
 * - Requests that arrive in one turn of the event loop go on together: what they write shares transactions, and their
 *   answers go out one right after the other, which wakes whoever waits for them once and not each time.
 * - To close is to accept no more, to finish what is under way, and to tell each connection that it was the last answer.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers'
import { getRequestListener } from '@hono/node-server'
import { failure } from '../../core/errors.js'
import { problem, problemResponse } from '../../server/http/problem.js'
import type { RequestInfo } from '../../server/index.js'
import type { AddressOf } from './client-address.js'

export interface HttpListenerOptions {
  readonly fetch: (request: Request, info: RequestInfo) => Response | Promise<Response>
  readonly addressOf: AddressOf
  readonly timings?: Partial<Timings>
}

export interface Timings {
  /** For the head of a request. */
  readonly headMs: number
  /** For a whole body that is no stream. */
  readonly bodyMs: number
  /** How long a body may stand still. */
  readonly idleMs: number
  /** How long nothing at all may go over a connection: more than any request is kept waiting. */
  readonly stillMs: number
}

const TIMINGS: Timings = { headMs: 10_000, bodyMs: 30_000, idleMs: 15_000, stillMs: 120_000 }
/** Longer than the usual proxy waits, so that it is the proxy who closes. */
const KEEP_ALIVE_MS = 75_000
const STREAMS = /^[^?]*:import(\?|$)/

/** A body on its way, as it was when it was last looked at. */
interface Progress {
  readonly startedAt: number
  seen: number
  movedAt: number
}

export class HttpListener {
  readonly #server: Server
  readonly #timings: Timings
  readonly #listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /**
   * The newest answer of each connection that is under way. By connection, because those stay: a set of answers would be
   * filled and emptied all the time, and what it leaves behind keeps answers that are long over from being collected.
   */
  readonly #answers = new Map<Socket, ServerResponse<IncomingMessage> | undefined>()
  #underWay = 0
  readonly #bodies = new WeakMap<IncomingMessage, Progress>()
  #arrived: ServerResponse<IncomingMessage>[] = []
  #watch: NodeJS.Timeout | undefined
  #closing = false

  constructor({ fetch, addressOf, timings = {} }: HttpListenerOptions) {
    this.#timings = { ...TIMINGS, ...timings }
    const { headMs, stillMs } = this.#timings
    this.#listener = getRequestListener(
      (request, { incoming }) => fetch(request, addressOf(incoming as IncomingMessage)),
      { errorHandler: (error) => badRequest(error) },
    )
    this.#server = createServer(
      {
        ...{ headersTimeout: headMs, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS },
        connectionsCheckingInterval: Math.min(headMs, 1_000),
      },
      (_, response) => this.#begin(response),
    )
    // Who does not read what was asked for holds on to it no longer than this.
    this.#server.timeout = stillMs
    this.#server.on('clientError', refuse)
    this.#server.on('connection', (socket) => {
      this.#answers.set(socket, undefined)
      socket.on('close', () => this.#answers.delete(socket))
    })
  }

  /** How many requests are under way. */
  get underWay(): number {
    return this.#underWay
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(bindError(error, host, port)))
      this.#server.listen(port, host, resolve)
    })
    const { bodyMs, idleMs } = this.#timings
    this.#watch = setInterval(() => this.#watchBodies(), Math.min(idleMs, bodyMs) / 4)
    return this.#server.address() as AddressInfo
  }

  /** Resolves when the last answer is out, or when there is no more patience. */
  async close(patienceMs: number): Promise<void> {
    this.#closing = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const answer of this.#answers.values()) if (answer !== undefined) answer.shouldKeepAlive = false
    const timer = setTimeout(() => this.#server.closeAllConnections(), patienceMs)
    // Connections on which nothing was asked yet count as idle only once they have been quiet.
    const sweep = setInterval(() => this.#server.closeIdleConnections(), 50)
    await closed
    clearTimeout(timer)
    clearInterval(sweep)
    clearInterval(this.#watch)
  }

  #begin(response: ServerResponse<IncomingMessage>): void {
    const { socket } = response.req
    if (this.#closing) response.shouldKeepAlive = false
    this.#underWay += 1
    this.#answers.set(socket, response)
    response.on('close', () => {
      this.#underWay -= 1
      if (this.#answers.get(socket) === response) this.#answers.set(socket, undefined)
    })
    if (this.#arrived.push(response) === 1) setImmediate(() => this.#goOn())
  }

  #goOn(): void {
    const arrived = this.#arrived
    this.#arrived = []
    for (const response of arrived) void this.#listener(response.req, response)
  }

  #watchBodies(): void {
    const now = performance.now()
    for (const response of this.#answers.values()) {
      if (response && !response.req.complete && !response.req.destroyed) this.#watchBody(response, now)
    }
  }

  #watchBody(response: ServerResponse<IncomingMessage>, now: number): void {
    const { req: request } = response
    const { bytesRead } = request.socket
    const { bodyMs, idleMs } = this.#timings
    const body = this.#bodies.get(request)
    if (body === undefined) return void this.#bodies.set(request, { startedAt: now, seen: bytesRead, movedAt: now })
    // Bytes that wait here to be read are our slowness, not the client's.
    if (bytesRead > body.seen || request.readableLength > 0) {
      body.seen = bytesRead
      body.movedAt = now
    }
    const isLate = now - body.startedAt > bodyMs && !STREAMS.test(request.url ?? '')
    if (isLate || now - body.movedAt > idleMs) cutOff(request, response)
  }
}

/** Whoever reads the body finds it broken off. */
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

/** Only what cannot be made a request of comes here: the app answers for everything else. */
function badRequest(error: unknown): Response {
  if (error instanceof Error && error.name === 'RequestError') {
    return problemResponse(problem(400, 'REQUEST_INVALID', 'the request line or the Host header is not well-formed'))
  }
  return problemResponse(problem(500, 'INTERNAL', 'something went wrong here that is not your fault'))
}

function bindError(error: NodeJS.ErrnoException, host: string, port: number) {
  const where = `${host}:${port}`
  if (error.code === 'EADDRINUSE') {
    return failure('OPTION_INVALID', `${where} is taken by another program: choose another with --port`)
  }
  if (error.code === 'EACCES')
    return failure('OPTION_INVALID', `${where} may not be used here: ports below 1024 are reserved`)
  return failure('OPTION_INVALID', `cannot listen on ${where}: ${error.message}`, { cause: error })
}
