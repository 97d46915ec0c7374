/**
 * Clients out of the pool, each for one statement or one transaction.
 *
 * A network may swallow answers without closing the connection. Statements have a limit for that (`reply-limit.ts`), and
 * one silent connection makes all older ones suspect: the network most likely swallows their answers as well. Each
 * connection that has not answered since is closed instead of used, so a silence is waited for once, and not once for
 * each connection of the pool.
 */
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import { inTime, Silence } from '../../../core/in-time.js'
import { driven } from './errors.js'
import { type PgClient, type PgPool, type Query, type Row, rowsOf } from './pg-client.js'
import { takeClient } from './take-client.js'

/** A pool may be busy with the app for a moment, and has limits of its own for opening a connection. */
const CONNECT_MS = 30_000

export class Clients {
  readonly #pool: PgPool
  readonly #clock: Clock
  /** Told of each connection that gave no answer. */
  readonly #onSilent: (client: PgClient) => void
  /** How many silences there were before each connection last answered. */
  readonly #heard = new WeakMap<PgClient, number>()
  #silences = 0

  constructor(pool: PgPool, clock: Clock, onSilent: (client: PgClient) => void) {
    this.#pool = pool
    this.#clock = clock
    this.#onSilent = onSilent
  }

  async take(): Promise<PgClient> {
    for (;;) {
      const client = await this.#connect()
      if ((this.#heard.get(client) ?? this.#silences) === this.#silences) {
        client.on('error', ignore)
        return client
      }
      client.release(true)
    }
  }

  /** One that is broken is closed. */
  giveBack(client: PgClient, broken: boolean): void {
    // One that is closed may report an error while it ends.
    if (!broken) client.removeListener('error', ignore)
    if (!broken && this.#heard.get(client) !== this.#silences) this.#heard.set(client, this.#silences)
    client.release(broken)
  }

  /** A statement, and its answer if it comes in time. */
  async send(client: PgClient, query: Query, limitMs: number): Promise<readonly Row[]> {
    try {
      return rowsOf(await driven(inTime(this.#clock, limitMs, client.query(query))))
    } catch (error) {
      if (error instanceof Silence) {
        this.silent()
        this.#onSilent(client)
      }
      throw error
    }
  }

  /** A connection gave no answer within its limit: those that have not answered since are suspect. */
  silent(): void {
    this.#silences += 1
  }

  #connect(): Promise<PgClient> {
    return new Promise((resolve, reject) => {
      let late = false
      const cancel = this.#clock.after(CONNECT_MS, () => {
        late = true
        reject(noConnection())
      })
      takeClient(this.#pool)
        .then((client) => (late ? client.release() : resolve(client)), reject)
        .finally(cancel)
    })
  }
}

/** A connection that breaks between two statements says so by an event, which would end the process if nobody listened. */
function ignore(): void {}

function noConnection(): Error {
  return failure(
    'STORE_UNREACHABLE',
    `the pool has handed out no connection for ${CONNECT_MS / 1000} s: all of them are in use, or the server does not answer; make the pool larger, or set connectionTimeoutMillis`,
  )
}
