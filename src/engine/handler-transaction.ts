import { failure, quote } from '../core/errors.js'
import type { Json } from '../core/json.js'
import type { ClaimedRun, RunStore } from '../core/store.js'

/**
 * The one transaction that an attempt may commit. Once it has, the run has succeeded with its value, whatever the
 * handler does afterwards.
 */
export class HandlerTransaction {
  readonly #store: Pick<RunStore, 'transact'>
  readonly #run: ClaimedRun
  #pending: Promise<unknown> | undefined
  #abandon: AbortController | undefined
  #committed: { readonly result: Json } | undefined

  constructor(store: Pick<RunStore, 'transact'>, run: ClaimedRun) {
    this.#store = store
    this.#run = run
  }

  /** What was committed, if anything was. */
  get committed(): { readonly result: Json } | undefined {
    return this.#committed
  }

  /** Does the work and commits it with the run's completion. */
  async commit(work: (tx: unknown) => unknown): Promise<Json> {
    const { id, token, attempt } = this.#run
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
    this.#abandon ??= new AbortController()
    this.#abandon.signal.throwIfAborted()
    const pending = transact({ run: id, token }, work, this.#abandon.signal)
    this.#pending = pending
    const answer = await pending
    if (answer === 'stale') {
      throw failure('STALE', `attempt ${attempt} of run ${id} has lost the run: its transaction was rolled back`)
    }
    this.#committed = answer
    return answer.result
  }

  /** The attempt is fenced: what has not been committed never will be, and holds nothing any longer. */
  abandon(reason: Error): void {
    this.#abandon ??= new AbortController()
    this.#abandon.abort(reason)
  }

  /** Still under way: a handler that returned without waiting for it has not ended yet. Never rejects. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending?.catch(() => {
      // Whoever called it was told.
    })
  }
}
