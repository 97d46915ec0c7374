import type { Json } from '../../core/checks/json.js'
import { failure, quote } from '../../core/errors.js'
import type { RunStore } from '../../core/store.js'
import { unlessAborted } from '../../core/unless-aborted.js'
import { type Attempt, abortError } from './attempt.js'

/**
 * The one transaction that an attempt may commit. After the commit the run has succeeded with the transaction's value,
 * whatever the handler does next.
 *
 * When the lease is lost, the handler's call rejects at once, even while the store is committing. Another instance may
 * soon start the next run of the key, and a handler that still waited for the commit would overlap it.
 */
export class HandlerTransaction {
  readonly #store: Pick<RunStore, 'transact'>
  readonly #attempt: Attempt
  #pending: Promise<unknown> | undefined
  /** Created on first use: most attempts have no transaction. */
  #abandoned: AbortController | undefined
  #committed: { readonly result: Json } | undefined

  constructor(store: Pick<RunStore, 'transact'>, attempt: Attempt) {
    this.#store = store
    this.#attempt = attempt
  }

  get committed(): { readonly result: Json } | undefined {
    return this.#committed
  }

  /** Runs the work and commits it together with the run's completion. */
  async commit(work: (tx: unknown) => unknown): Promise<Json> {
    const { id, token, attempt } = this.#attempt.run
    const { transact } = this.#store
    if (transact === undefined) {
      throw failure('UNSUPPORTED', 'this store has no transactions: use Postgres or SQLite for transaction()')
    }
    if (typeof work !== 'function') {
      throw failure('OPTION_INVALID', `transaction(): give it a function that does the work, not ${quote(work)}`)
    }
    if (this.#pending !== undefined) {
      throw failure(
        'OPTION_INVALID',
        `transaction() was called before in attempt ${attempt} of run ${id}: it commits once`,
      )
    }
    this.#attempt.onLost(() => this.abandon(abortError('lost', this.#attempt.run)))
    this.#abandoned ??= new AbortController()
    const { signal } = this.#abandoned
    signal.throwIfAborted()
    const pending = unlessAborted(transact({ run: id, token }, work, signal), signal)
    this.#pending = pending
    const answer = await pending
    if (answer === 'stale') {
      throw failure('STALE', `attempt ${attempt} of run ${id} has lost the run: its transaction was rolled back`)
    }
    this.#committed = answer
    return answer.result
  }

  /**
   * Rejects the handler's call, because the attempt is fenced or lost. The store rolls back, unless it is already
   * committing.
   */
  abandon(reason: Error): void {
    this.#abandoned ??= new AbortController()
    this.#abandoned.abort(reason)
  }

  /** Resolves when the transaction has ended. Never rejects: the handler's own call gets the error. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending?.catch(() => {
      // The handler's own call has rejected with this error.
    })
  }
}
