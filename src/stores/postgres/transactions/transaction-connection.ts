/**
 * A client out of the pool, for one transaction. However that ends, the client goes back without it, or not at all.
 *
 * No connection is waited for in vain. What Belfry sends to begin and to roll back has a limit. While the callback's
 * statements or the commit are under way, the server is asked over another connection whether it still works on them
 * (`answer-watch.ts`); if it does not, the connection is closed and its backend ended.
 */
import { failure } from '../../../core/errors.js'
import type { Database } from '../connection/database.js'
import { type PgClient, type Row, rawQuery } from '../connection/driver.js'
import { driven, sqlState } from '../connection/errors.js'
import { AnswerWatch } from './half-open-watch.js'
import { endBackend, isWorking, lookAtBackend, type TransactionBackend } from './transaction-backend.js'

const IDLE_TOO_LONG = '25P03'

export class HeldClient {
  readonly client: PgClient
  /** Resolves when the connection is lost, or given back. */
  readonly over: Promise<void>
  /** Resolves when it is the pool's again, or closed. */
  readonly released: Promise<void>
  readonly #db: Database
  readonly #signal: AbortSignal | undefined
  readonly #watch: AnswerWatch
  #backend: TransactionBackend | undefined
  #lost: Error | undefined
  #silence: Error | undefined
  #end = () => {}
  #whenReleased = () => {}
  #cancelRelease = () => {}
  #state: 'open' | 'committing' | 'ended' | 'released' = 'open'

  private constructor(db: Database, client: PgClient, signal: AbortSignal | undefined) {
    this.#db = db
    this.client = client
    this.#signal = signal
    this.over = new Promise((resolve) => {
      this.#end = resolve
    })
    this.released = new Promise((resolve) => {
      this.#whenReleased = resolve
    })
    this.#watch = new AnswerWatch({
      clock: db.clock,
      limitMs: () => db.limitMs({ patience: 'prompt' }),
      look: () => this.#look(),
      onSilent: () => this.#gaveNoAnswer(),
    })
    client.on('error', this.#hear)
    signal?.addEventListener('abort', this.#abandon, { once: true })
  }

  /** A connection that is abandoned when the signal fires. */
  static async of(db: Database, signal: AbortSignal | undefined): Promise<HeldClient> {
    signal?.throwIfAborted()
    const connecting = db.clients.take()
    return new Promise((resolve, reject) => {
      const abort = () => {
        reject(signal?.reason)
        connecting.then(
          (late) => db.clients.giveBack(late, false),
          () => {},
        )
      }
      signal?.addEventListener('abort', abort, { once: true })
      connecting
        .then((client) => signal?.aborted || resolve(new HeldClient(db, client, signal)))
        .catch(reject)
        .finally(() => signal?.removeEventListener('abort', abort))
    })
  }

  /** A connection that breaks between two statements says so only here. */
  readonly #hear = (error: Error): void => {
    this.#lost ??= error
    this.#end()
  }

  /** Sends the first statements. If they fail nothing has happened, and the client is given back. */
  async begin(sql: string): Promise<readonly Row[]> {
    try {
      return await this.#db.sendOn(this.client, sql)
    } catch (error) {
      if (sqlState(error) === undefined) this.#release(true)
      await this.giveBack()
      throw error
    }
  }

  begun(backend: TransactionBackend): void {
    this.#backend = backend
  }

  /** A statement of the callback was sent; to be called back when it is answered. */
  sent(): () => void {
    return this.#watch.sent()
  }

  /** Sends the last statements. Answers with what went wrong, if anything did: then the connection is used no more. */
  async commit(sql: string): Promise<unknown> {
    if (this.#state !== 'open') return this.#silence ?? new Error('its connection was closed')
    this.#state = 'committing'
    try {
      await this.#watch.during(driven(this.client.query(rawQuery(sql))))
      if (this.#state === 'committing') this.#state = 'ended'
      return undefined
    } catch (error) {
      if (sqlState(error) === undefined) this.#release(true)
      return error
    }
  }

  /** Why the connection was closed, where that is known. */
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
   * Closes the connection at once, and ends the statement that the server may still be at. A commit is left to end, but
   * its connection is not kept for that any longer than another answer would be waited for.
   */
  readonly #abandon = (): void => {
    if (this.#state === 'committing') {
      this.#cancelRelease = this.#db.clock.after(this.#db.limitMs({ patience: 'prompt' }), () => this.#release(true))
    }
    if (this.#state !== 'open') return
    this.#release(true)
    this.#endBackend()
  }

  /** Rolls back what has not ended. A connection that cannot even do that is closed. */
  async giveBack(): Promise<void> {
    if (this.#state === 'released') return
    if (this.#state === 'ended') return this.#release(false)
    const broken = await this.#db.sendOn(this.client, 'rollback').then(
      () => false,
      () => true,
    )
    this.#release(broken)
  }

  async #look(): Promise<string | undefined> {
    if (this.#backend === undefined) return undefined
    const state = await lookAtBackend(this.#db, this.#backend)
    return isWorking(state) ? undefined : state
  }

  #gaveNoAnswer(): void {
    this.#silence = failure(
      'STORE_UNREACHABLE',
      `transaction(): its connection has given no answer for ${this.#db.limitMs({ patience: 'prompt' })} ms, and the server does not work on what was sent over it: the network may have swallowed it`,
    )
    this.#db.clients.noteSilence()
    this.#release(true)
    this.#endBackend()
  }

  #endBackend(): void {
    if (this.#backend !== undefined) endBackend(this.#db, this.#backend).catch(() => {})
  }

  #release(broken: boolean): void {
    if (this.#state === 'released') return
    this.#state = 'released'
    this.#signal?.removeEventListener('abort', this.#abandon)
    this.#cancelRelease()
    this.#watch.end()
    this.#end()
    if (!broken) this.client.removeListener('error', this.#hear)
    this.#db.clients.giveBack(this.client, broken)
    this.#whenReleased()
  }
}
