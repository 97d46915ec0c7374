/**
 * A client out of the pool, for one transaction. However that ends, the client goes back without it, or not at all.
 */
import { failure } from '../../core/errors.js'
import { type Database, type PgClient, type Row, rawQuery, rowsOf } from './connection.js'
import { sqlState, storeError } from './connection-errors.js'
import { takeClient } from './take-client.js'

interface Backend {
  readonly xid: string
  readonly pid: number
}

/** Only if it still is at that transaction: the connection may serve somebody else by now. */
const END_BACKEND = `select pg_terminate_backend(pid) from pg_stat_activity
  where pid = $1 and backend_xid = xid($2::text::xid8)`

const IDLE_TOO_LONG = '25P03'

export class HeldClient {
  readonly client: PgClient
  /** Resolves when the connection is lost, or given back. */
  readonly over: Promise<void>
  readonly #db: Database
  #backend: Backend | undefined
  #lost: Error | undefined
  #end = () => {}
  #state: 'open' | 'committing' | 'ended' | 'released' = 'open'

  private constructor(db: Database, client: PgClient) {
    this.#db = db
    this.client = client
    this.over = new Promise((resolve) => {
      this.#end = resolve
    })
    client.on('error', this.#hear)
  }

  static async of(db: Database, signal: AbortSignal | undefined): Promise<HeldClient> {
    const connecting = takeClient(db.pool)
    return new Promise((resolve, reject) => {
      const abort = () => {
        reject(signal?.reason)
        connecting.then(
          (late) => late.release(),
          () => {},
        )
      }
      signal?.addEventListener('abort', abort, { once: true })
      connecting
        .then((client) => signal?.aborted || resolve(new HeldClient(db, client)))
        .catch((error: unknown) => reject(storeError(error, db.schema)))
        .finally(() => signal?.removeEventListener('abort', abort))
    })
  }

  /** A connection that breaks between two statements says so only here. */
  readonly #hear = (error: Error): void => {
    this.#lost ??= error
    this.#end()
  }

  begun(backend: Backend): void {
    this.#backend = backend
  }

  async run(sql: string): Promise<readonly Row[]> {
    return rowsOf(await this.client.query(rawQuery(sql)))
  }

  /** Sends the last statements. Answers with what went wrong, if anything did. */
  async commit(sql: string): Promise<unknown> {
    if (this.#state === 'open') this.#state = 'committing'
    try {
      await this.run(sql)
      this.#state = 'ended'
      return undefined
    } catch (error) {
      return error
    }
  }

  /** Why the server closed the connection, where it said so. */
  get problem(): Error | undefined {
    if (sqlState(this.#lost) !== IDLE_TOO_LONG) return undefined
    return failure(
      'TRANSACTION_ABORTED',
      'transaction(): the callback sent no statement for too long (15 s, unless you set idle_in_transaction_session_timeout in it), and Postgres rolled it back; await what takes long before transaction(), not in it',
      { cause: this.#lost },
    )
  }

  /** Closes the connection at once, and ends the statement that the server may still be at. A commit is left to end. */
  async abandon(): Promise<void> {
    if (this.#state !== 'open') return
    this.#release(true)
    const { xid, pid } = this.#backend ?? {}
    if (xid !== undefined) await this.#db.read(END_BACKEND, [pid, xid]).catch(() => {})
  }

  /** Rolls back what has not ended. A connection that cannot even do that is of no use to anybody. */
  async giveBack(): Promise<void> {
    if (this.#state === 'released') return
    if (this.#state === 'ended') return this.#release(false)
    const broken = await this.run('rollback').then(
      () => false,
      () => true,
    )
    this.#release(broken)
  }

  #release(broken: boolean): void {
    if (this.#state === 'released') return
    this.#state = 'released'
    this.#end()
    if (!broken) this.client.removeListener('error', this.#hear)
    this.client.release(broken)
  }
}
