/** A service on a real port, for tests that send raw bytes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Belfry, createBelfry } from '../../../src/belfry.js'
import { clientAddress } from '../../../src/cli/serve/client-address.js'
import { HttpListener, type Timings } from '../../../src/cli/serve/http-listener.js'
import { silentLogger } from '../../../src/core/logger.js'
import { createServer } from '../../../src/server/index.js'
import { type AuthoriseOptions, tokenAuthorise } from '../../../src/server/security/authorise.js'
import { Tokens } from '../../../src/server/security/tokens.js'
import { memory } from '../../../src/stores/memory/index.js'

export interface RawService {
  readonly belfry: Belfry
  readonly listener: HttpListener
  readonly port: number
  /** A token with the role admin. */
  readonly token: string
  /** Sends these bytes, and resolves with everything received until the connection closes or the time is over. */
  send(bytes: string | Buffer, options?: SendOptions): Promise<string>
  close(): Promise<void>
}

export interface SendOptions {
  /** Ends the sending side of the connection. */
  readonly end?: boolean
  readonly waitMs?: number
}

export interface RawServiceOptions extends AuthoriseOptions {
  readonly timings?: Partial<Timings>
  readonly proxies?: readonly string[]
  readonly bodyBytes?: number
  readonly maxConnections?: number
}

export async function rawService(options: RawServiceOptions = {}): Promise<RawService> {
  const { timings = {}, proxies = [], bodyBytes, maxConnections, ...authorise } = options
  const belfry = createBelfry({ store: memory(), roles: [], logger: silentLogger })
  await belfry.start()
  const server = createServer(belfry, {
    authorise: tokenAuthorise(belfry.records, authorise),
    logger: silentLogger,
    ...(bodyBytes === undefined ? {} : { limits: { bodyBytes } }),
  })
  const listener = new HttpListener({
    fetch: (request, info) => server.fetch(request, info),
    addressOf: clientAddress(proxies),
    timings,
    ...(maxConnections === undefined ? {} : { maxConnections }),
  })
  const { port } = await listener.listen('127.0.0.1', 0)
  const { token } = await new Tokens(belfry.records).create({ role: 'admin' })
  return {
    belfry,
    listener,
    port,
    token,
    send: (bytes, how) => exchange(port, bytes, how),
    async close() {
      await Promise.all([listener.close(1_000), server.close()])
      await belfry.stop()
    },
  }
}

async function exchange(port: number, bytes: string | Buffer, { end = false, waitMs = 10_000 }: SendOptions = {}) {
  const socket: Socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (end) socket.end(bytes)
  else socket.write(bytes)
  const timer = setTimeout(() => socket.destroy(), waitMs)
  await once(socket, 'close')
  clearTimeout(timer)
  return answer
}

/** The status of the first answer; undefined without an answer. */
export function statusOf(answer: string): number | undefined {
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? []
  return status === undefined ? undefined : Number(status)
}

/** All contents of the store. */
export async function everything({ schedules, runs, locks, records }: Belfry): Promise<string> {
  return JSON.stringify({
    schedules: await schedules.list({ limit: 1_000 }),
    runs: await runs.list({ limit: 1_000 }),
    locks: await locks.list({ limit: 1_000 }),
    tokens: await records.list({ kind: 'token', limit: 1_000 }),
    sessions: await records.list({ kind: 'session', limit: 1_000 }),
    audit: await records.list({ kind: 'audit', limit: 1_000 }),
  })
}
