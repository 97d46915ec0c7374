import { failure, quote } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import type { RunStore } from '../../core/store.js'
import { type Attempt, abortError } from './attempt.js'

/**
 * The one transaction that an attempt may commit. Once it has, the run has succeeded with its value, whatever the
 * handler does afterwards.
 *
 * When the lease is lost the handler is told at once, even while the store is committing: another instance may start the
 * next run of the key in a moment, and a handler that still waited for the store would overlap it.
 */
export class HandlerTransaction {
  readonly #store: Pick<RunStore, 'transact'>
  readonly #attempt: Attempt
  #pending: Promise<unknown> | undefined
  /** Made when it is needed: most attempts have no transaction. */
  #abandoned: AbortController | undefined
  #committed: { readonly result: Json } | undefined

  constructor(store: Pick<RunStore, 'transact'>, attempt: Attempt) {
    this.#store = store
    this.#attempt = attempt
  }

  /** What was committed, if anything was. */
  get committed(): { readonly result: Json } | undefined {
    return this.#committed
  }

  /** Does the work and commits it with the run's completion. */
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

  /** The attempt is fenced, or lost: the handler waits no longer, and what the store is not committing yet is rolled back. */
  abandon(reason: Error): void {
    this.#abandoned ??= new AbortController()
    this.#abandoned.abort(reason)
  }

  /** Still under way: a handler that returned without waiting for it has not ended yet. Never rejects. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending?.catch(() => {
      // Whoever called it was told.
    })
  }
}

/** The work's answer, or the signal's reason, whichever comes first. */
function unlessAborted<Answer>(work: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
