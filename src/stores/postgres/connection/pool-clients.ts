/**
 * Clients of the pool, each taken for one statement or one transaction.
 *
 * - **Half-open connections.** A network may swallow answers without closing the connection, so each statement has a
 *   limit. One silent connection makes all others suspect, because a network that lost one has often lost them all.
 *   Connections that are idle in the pool are closed at once. Any other connection that has not answered since the
 *   silence is closed when it is next taken. So a silence costs one limit, and not one for each connection of the pool.
 * - **New connections** are asked about their session before they are used. After a silence they have a third of the
 *   usual limit to answer, because a pooler may have connected them to the server that was lost.
 * - **Transactions left open.** The pool is shared with the app. If the app released a client inside a transaction,
 *   Belfry would write into that transaction: the write would be acknowledged, and then rolled back with it. Such a
 *   connection is closed, which rolls the transaction back, and the caller gets an error.
 */
import type { Clock } from '../../../core/clock.js'
import { afterLimit, inTime, Silence } from '../../../core/connection/in-time.js'
import { failure } from '../../../core/errors.js'
import { type PgClient, type PgPool, type Query, type Row, rawQuery, rowsOf } from './driver.js'
import { driven, sqlState, troubleOf } from './errors.js'
import { errorOf, ignore } from './pool.js'
import { IDENTITY, type ServerIdentity } from './server-identity.js'
import { readSession, SESSION, type Session } from './session.js'

/**
 * How long an operation waits for a connection. The app may use all connections for a moment, and the pool has its own
 * limit for opening one.
 */
const CONNECT_MS = 30_000
/**
 * The same while the store is opened. Shorter, because this wait may be a deadlock: a caller that holds the pool's last
 * connection in a transaction, and calls Belfry for the first time inside it, waits for itself.
 */
export const FIRST_CONNECT_MS = 10_000
/** After a silence, the part of the usual limit that a new connection has to answer. */
const PROBE = 1 / 3
/**
 * A pooler may later lead the same connection to another server. So a connection through a pooler is asked again this
 * often.
 */
const ASK_POOLER_EVERY_MS = 1_000

export interface PoolClientsOptions {
  readonly pool: PgPool
  readonly clock: Clock
  /** The limit of a statement that must not wait: a third of the lease. */
  readonly promptMs: () => number
  readonly identity: ServerIdentity
  readonly onSilence: (client: PgClient, session: Session | undefined) => void
}

export class PoolClients {
  readonly #options: PoolClientsOptions
  readonly #sessions = new WeakMap<PgClient, Session & { readonly askedAt: number }>()
  /** The value of `#silences` when each connection last answered. */
  readonly #silencesAtAnswer = new WeakMap<PgClient, number>()
  #silences = 0
  /** True from a silence until another connection answers. */
  #isInDoubt = false
  /** False once the server has refused `IDENTITY`: on some managed servers no role may read it. */
  #canIdentify = true

  constructor(options: PoolClientsOptions) {
    this.#options = options
  }

  /** Takes a client from the pool. A new client is first asked about its session. */
  async take(connectMs = CONNECT_MS): Promise<{ readonly client: PgClient; readonly session: Session }> {
    for (;;) {
      const client = await this.#connect(this.#isInDoubt ? this.#options.promptMs() : connectMs)
      client.on('error', ignore)
      if (this.#isSuspect(client)) client.release(true)
      else return { client, session: this.#sessionOf(client) ?? (await this.#askSession(client)) }
    }
  }

  /** Returns the client to the pool, or closes it when it is broken. */
  giveBack(client: PgClient, isBroken: boolean): void {
    if (!isBroken) {
      this.#silencesAtAnswer.set(client, this.#silences)
      // Only a client that stays open loses this listener: a client that closes may still emit an error.
      client.removeListener('error', ignore)
    }
    client.release(isBroken)
  }

  /** Sends a statement. Throws a `Silence`, and makes other connections suspect, when no answer comes in time. */
  async send(client: PgClient, query: Query, limitMs: number): Promise<readonly Row[]> {
    try {
      const rows = await driven(this.#answerTo(client, query, limitMs))
      this.#isInDoubt = false
      return rows
    } catch (error) {
      if (error instanceof Silence) {
        this.noteSilence()
        this.#options.onSilence(client, this.#sessions.get(client))
      }
      throw error
    }
  }

  /**
   * Makes every open connection suspect until it has answered again. Connections that are idle in the pool are closed
   * at once.
   */
  noteSilence(): void {
    this.#silences += 1
    this.#isInDoubt = true
    const { pool } = this.#options
    for (let idle = pool.idleCount ?? 0; idle > 0; idle -= 1) {
      pool.connect().then(
        (client) => client.release(true),
        () => {},
      )
    }
  }

  #isSuspect(client: PgClient): boolean {
    const isSilent = (this.#silencesAtAnswer.get(client) ?? this.#silences) < this.#silences
    return isSilent || this.#options.identity.isOutdated(client)
  }

  #sessionOf(client: PgClient): Session | undefined {
    const session = this.#sessions.get(client)
    if (session === undefined || session.isDirect) return session
    return this.#options.clock.monotonic() - session.askedAt < ASK_POOLER_EVERY_MS ? session : undefined
  }

  /**
   * Waits for the answer to a statement. A long limit is waited for in steps of one prompt limit. If another connection
   * has become silent by the end of a step, this one counts as silent, too.
   */
  async #answerTo(client: PgClient, query: Query, limitMs: number): Promise<readonly Row[]> {
    const { clock, promptMs } = this.#options
    const silences = this.#silences
    const answer = client.query(query).catch((error: unknown) => {
      // If the connection was closed before the statement was sent, report why the server closed it.
      throw sqlState(error) === undefined ? (errorOf(client) ?? error) : error
    })
    for (let waitedMs = 0; ; ) {
      const waitMs = Math.min(promptMs(), limitMs - waitedMs)
      try {
        return rowsOf(await inTime(clock, waitMs, answer))
      } catch (error) {
        waitedMs += waitMs
        if (!(error instanceof Silence)) throw error
        if (waitedMs >= limitMs || this.#silences > silences) throw new Silence(waitedMs)
      }
    }
  }

  async #askSession(client: PgClient): Promise<Session> {
    try {
      const limitMs = this.#options.promptMs() * (this.#isInDoubt ? PROBE : 1)
      const ask = (sql: string) => driven(this.#answerTo(client, rawQuery(sql), limitMs))
      const [row = []] = await ask(SESSION)
      const session = { ...readSession(client, row), askedAt: this.#options.clock.monotonic() }
      if (this.#canIdentify) await this.#checkIdentity(client, ask)
      this.#sessions.set(client, session)
      return session
    } catch (error) {
      client.release(true)
      throw isInTransaction(client) ? leftOpen() : error
    }
  }

  async #checkIdentity(client: PgClient, ask: (sql: string) => Promise<readonly Row[]>): Promise<void> {
    const [row] = await ask(IDENTITY).catch((error: unknown) => {
      if (troubleOf(error) !== undefined) throw error
      this.#canIdentify = false
      return []
    })
    if (row !== undefined) this.#options.identity.check(client, row)
  }

  #connect(limitMs: number): Promise<PgClient> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const cancel = afterLimit(this.#options.clock, limitMs, () => {
        isLate = true
        reject(noConnection(limitMs))
      })
      connect(this.#options.pool)
        .then((client) => (isLate ? client.release() : resolve(client)), reject)
        .finally(cancel)
    })
  }
}

async function connect(pool: PgPool): Promise<PgClient> {
  const client = await driven(pool.connect())
  if (!isInTransaction(client)) return client
  client.release(true)
  throw leftOpen()
}

/** Whether the last answer over this connection came from inside a transaction. */
export function isInTransaction(client: PgClient): boolean {
  const status = client.getTransactionStatus === undefined ? statusHeard(client) : client.getTransactionStatus()
  return typeof status === 'string' && status !== OUTSIDE
}

const OUTSIDE = 'I'

const statuses = new WeakMap<PgClient, string | null>()

/**
 * For drivers without `getTransactionStatus`. The status is unknown until the first reply after a client is first
 * taken, so callers check again after their own statement.
 */
function statusHeard(client: PgClient): string | null {
  const known = statuses.get(client)
  if (known !== undefined) return known
  statuses.set(client, null)
  client.connection?.on('readyForQuery', ({ status }) => statuses.set(client, status ?? null))
  return null
}

export function leftOpen(): Error {
  return failure(
    'STORE_INVALID',
    'the pool handed out a connection on which a transaction was still open, so nothing was done, and the connection was closed, which rolls that transaction back: look for a `begin` in the app whose client is released without `commit` or `rollback`',
  )
}

function noConnection(limitMs: number): Error {
  return failure(
    'STORE_UNREACHABLE',
    `the pool gave no connection for ${Math.round(limitMs / 100) / 10} s: all that it may open (\`max\`) are in use, or the server does not answer. If one of them is held by a transaction that calls Belfry for the first time, call belfry.start() or belfry.now() before that transaction; else raise \`max\`, or set connectionTimeoutMillis`,
  )
}
