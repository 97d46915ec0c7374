/**
 * A connection of the pool, held for one handler's transaction. However the transaction ends, the pool gets the
 * connection back outside of any transaction, or closed.
 *
 * Every wait has a limit. `begin` and `rollback` have the limit of other statements. While statements of the callback
 * or the commit are in flight, a `HalfOpenWatch` asks the server, over another connection, whether it is executing
 * them. If not, the network has swallowed a message: the connection is closed on this side, and its backend is ended.
 *
 * When the signal fires, an open transaction is abandoned: the connection is closed, and the backend that may be
 * executing a statement is ended. A commit in flight may finish, but after the prompt limit its connection is closed,
 * too.
 */
import { failure } from '../../../core/errors.js'
import { unlessAborted } from '../../../core/unless-aborted.js'
import type { Database, Row } from '../connection/database.js'
import { type PgClient, rawQuery } from '../connection/driver.js'
import { driven, sqlState } from '../connection/errors.js'
import { HalfOpenWatch } from './half-open-watch.js'
import { endBackend, isWorking, lookAtBackend, type TransactionBackend } from './transaction-backend.js'

/** Why the commit did not succeed: it was refused, or its outcome is unknown. */
export interface CommitFailure {
  readonly isRefused: boolean
  readonly problem: unknown
}

const IDLE_TOO_LONG = '25P03'

export class TransactionConnection {
  readonly client: PgClient
  /** Resolves when the connection is lost or given back. */
  readonly over: Promise<void>
  readonly #db: Database
  readonly #signal: AbortSignal | undefined
  readonly #watch: HalfOpenWatch
  #state: 'open' | 'committing' | 'ended' | 'released' = 'open'
  #backend: TransactionBackend | undefined
  #lost: Error | undefined
  #silence: Error | undefined
  #end = () => {}
  #cancelRelease = () => {}

  private constructor(db: Database, client: PgClient, signal: AbortSignal | undefined) {
    this.#db = db
    this.client = client
    this.#signal = signal
    this.over = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#watch = new HalfOpenWatch({
      clock: db.clock,
      limitMs: () => this.#limitMs,
      look: () => this.#look(),
      onSilent: () => this.#gaveNoAnswer(),
    })
    client.on('error', this.#onError)
    signal?.addEventListener('abort', this.#abandon, { once: true })
  }

  static async open(db: Database, signal: AbortSignal | undefined): Promise<TransactionConnection> {
    signal?.throwIfAborted()
    const taken = db.clients.take().then(({ client }) => client)
    try {
      const client = await unlessAborted(taken, signal)
      signal?.throwIfAborted()
      return new TransactionConnection(db, client, signal)
    } catch (error) {
      taken.then(
        (client) => db.clients.giveBack(client, false),
        () => {},
      )
      throw error
    }
  }

  /** Sends the first statements. If they fail, nothing has been written, and the connection is given back. */
  async begin(sql: string): Promise<readonly Row[]> {
    try {
      return await this.#db.sendOn(this.client, sql)
    } catch (error) {
      if (sqlState(error) === undefined) this.#release(true)
      await this.giveBack()
      throw error
    }
  }

  hasBegun(backend: TransactionBackend): void {
    this.#backend = backend
  }

  /** A statement of the callback is in flight until the returned function is called. */
  sent(): () => void {
    return this.#watch.sent()
  }

  /** Sends the last statements. If the outcome of the commit is unknown, the connection is closed. */
  async commit(sql: string): Promise<'committed' | CommitFailure> {
    if (this.#state !== 'open') {
      return { isRefused: false, problem: this.#silence ?? new Error('its connection was closed') }
    }
    this.#state = 'committing'
    try {
      await this.#watch.during(driven(this.client.query(rawQuery(sql))))
      if (this.#state === 'committing') this.#state = 'ended'
      return 'committed'
    } catch (problem) {
      const isRefused = provesNoCommit(problem)
      if (!isRefused) this.#release(true)
      return { isRefused, problem }
    }
  }

  /** Why the connection was closed, if that is known. */
  get problem(): Error | undefined {
    if (this.#silence !== undefined) return this.#silence
    if (sqlState(this.#lost) !== IDLE_TOO_LONG) return undefined
    return failure(
      'TRANSACTION_ABORTED',
      'transaction(): the callback sent no statement for too long (15 s, unless you set idle_in_transaction_session_timeout in it), and Postgres rolled it back; await what takes long before transaction(), not in it',
      { cause: this.#lost },
    )
  }

  /**
   * Gives the connection back to the pool. A transaction that is still open is rolled back; if that fails, the
   * connection is closed.
   */
  async giveBack(): Promise<void> {
    if (this.#state === 'released') return
    if (this.#state === 'ended') return this.#release(false)
    const isBroken = await this.#db.sendOn(this.client, 'rollback').then(
      () => false,
      () => true,
    )
    this.#release(isBroken)
  }

  get #limitMs(): number {
    return this.#db.limitMs({ patience: 'prompt' })
  }

  /** A connection that breaks between two statements reports it only by this event. */
  readonly #onError = (error: Error): void => {
    this.#lost ??= error
    this.#end()
  }

  readonly #abandon = (): void => {
    if (this.#state === 'committing') {
      this.#cancelRelease = this.#db.clock.after(this.#limitMs, () => this.#release(true))
    }
    if (this.#state !== 'open') return
    this.#release(true)
    this.#endBackend()
  }

  async #look(): Promise<string | undefined> {
    if (this.#backend === undefined) return undefined
    const state = await lookAtBackend(this.#db, this.#backend)
    return isWorking(state) ? undefined : state
  }

  #gaveNoAnswer(): void {
    this.#silence = failure(
      'STORE_UNREACHABLE',
      `transaction(): its connection has given no answer for ${this.#limitMs} ms, and the server does not work on what was sent over it: the network may have swallowed it`,
    )
    this.#db.clients.noteSilence()
    this.#release(true)
    this.#endBackend()
  }

  #endBackend(): void {
    if (this.#backend !== undefined) endBackend(this.#db, this.#backend).catch(() => {})
  }

  #release(isBroken: boolean): void {
    if (this.#state === 'released') return
    this.#state = 'released'
    this.#signal?.removeEventListener('abort', this.#abandon)
    this.#cancelRelease()
    this.#watch.end()
    this.#end()
    if (!isBroken) this.client.removeListener('error', this.#onError)
    this.#db.clients.giveBack(this.client, isBroken)
  }
}

/**
 * Whether an error proves that nothing was committed. Every error of the server does, except those of a connection that
 * ends (SQLSTATE 08… and 57P…), which may come after the commit.
 */
function provesNoCommit(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !/^(08|57P)/.test(state)
}
