/**
 * Clients of the pool, each taken for one statement or one transaction.
 *
 * - **Half-open connections.** A network may swallow answers without closing the connection, so each statement has a
 *   limit. One silent connection makes all older ones suspect, because the network that lost one has often lost them all:
 *   a connection that has not answered since the silence is closed when it is taken, instead of used. So a silence costs
 *   one limit, and not one for each connection of the pool.
 * - **Transactions left open.** The pool is shared with the app. A client that the app released inside a transaction would
 *   make Belfry write into that transaction: acknowledged, and then rolled back with it. Such a connection is closed,
 *   which rolls the transaction back, and the caller gets an error.
 */
import type { Clock } from '../../../core/clock.js'
import { inTime, Silence } from '../../../core/connection/in-time.js'
import { failure } from '../../../core/errors.js'
import { type PgClient, type PgPool, type Query, type Row, rowsOf } from './driver.js'
import { driven, isOfDriver } from './errors.js'
import { ignore } from './pool.js'

/** The app may use all connections for a moment, and the pool has its own limit for opening one. */
const CONNECT_MS = 30_000
/** The same when the store is opened. */
const FIRST_CONNECT_MS = 10_000

export class PoolClients {
  readonly #pool: PgPool
  readonly #clock: Clock
  readonly #onSilence: (client: PgClient) => void
  /** How many silences there had been when each connection last answered. */
  readonly #silencesAtAnswer = new WeakMap<PgClient, number>()
  #silences = 0

  constructor(pool: PgPool, clock: Clock, onSilence: (client: PgClient) => void) {
    this.#pool = pool
    this.#clock = clock
    this.#onSilence = onSilence
  }

  async take(): Promise<PgClient> {
    for (;;) {
      const client = await this.#connect(CONNECT_MS, noConnection)
      if ((this.#silencesAtAnswer.get(client) ?? this.#silences) === this.#silences) {
        client.on('error', ignore)
        return client
      }
      client.release(true)
    }
  }

  /**
   * Fails soon when the pool has no connection to give. A caller that holds its last one for a transaction, and calls
   * Belfry inside it for the first time, would otherwise wait for itself.
   */
  async expectOne(): Promise<void> {
    try {
      const client = await this.#connect(FIRST_CONNECT_MS, noFirstConnection)
      client.release()
    } catch (error) {
      // An unreachable server: the first statement retries, and explains it.
      if (!isOfDriver(error)) throw error
    }
  }

  /** Returns the client to the pool, or closes it when it is broken. */
  giveBack(client: PgClient, broken: boolean): void {
    if (!broken) {
      this.#silencesAtAnswer.set(client, this.#silences)
      // A client that closes may still report an error.
      client.removeListener('error', ignore)
    }
    client.release(broken)
  }

  /** Sends a statement. Throws a `Silence`, and makes other connections suspect, when no answer comes in time. */
  async send(client: PgClient, query: Query, limitMs: number): Promise<readonly Row[]> {
    try {
      return rowsOf(await driven(inTime(this.#clock, limitMs, client.query(query))))
    } catch (error) {
      if (error instanceof Silence) {
        this.noteSilence()
        this.#onSilence(client)
      }
      throw error
    }
  }

  /** From now on, each connection that has not answered yet is suspect. */
  noteSilence(): void {
    this.#silences += 1
  }

  #connect(limitMs: number, problem: () => Error): Promise<PgClient> {
    return new Promise((resolve, reject) => {
      let late = false
      const cancel = this.#clock.after(limitMs, () => {
        late = true
        reject(problem())
      })
      connect(this.#pool)
        .then((client) => (late ? client.release() : resolve(client)), reject)
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
 * For drivers that keep the status to themselves: known only from the first answer after a client was first taken, so
 * callers ask again when their own statement has been answered.
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

function noConnection(): Error {
  return failure(
    'STORE_UNREACHABLE',
    `the pool has handed out no connection for ${CONNECT_MS / 1000} s: all of them are in use, or the server does not answer; make the pool larger, or set connectionTimeoutMillis`,
  )
}

function noFirstConnection(): Error {
  return failure(
    'STORE_UNREACHABLE',
    `opening the store: the pool gave no connection for ${FIRST_CONNECT_MS / 1_000} s, so all that it may open (\`max\`) are in use. If one of them is held by a transaction that calls Belfry, call belfry.start() or belfry.now() before that transaction, or raise \`max\``,
  )
}
