import { type Logger, withFields } from '../../core/logger.js'
import { type Message, messageOf } from '../../core/runs/event.js'
import type { ClaimedRun } from '../../core/store.js'
import type { HandlerContext } from '../definitions.js'
import type { Attempt } from './attempt.js'
import type { HandlerTransaction } from './handler-transaction.js'

/** The context of one handler call. Most handlers read little of it, so its members are created on first use. */
export class CallContext implements HandlerContext<unknown> {
  readonly payload: unknown
  readonly run: ClaimedRun
  readonly token: number
  readonly #attempt: Attempt
  readonly #transaction: HandlerTransaction
  readonly #log: Logger

  constructor(attempt: Attempt, payload: unknown, transaction: HandlerTransaction, log: Logger) {
    this.payload = payload
    this.run = attempt.run
    this.token = attempt.run.token
    this.#attempt = attempt
    this.#transaction = transaction
    this.#log = log
  }

  get signal(): AbortSignal {
    return this.#attempt.signal
  }

  get tick(): Date {
    return new Date(this.run.tick ?? this.run.createdAt)
  }

  get event(): Message {
    return messageOf(this.run)
  }

  get log(): Logger {
    return withFields(this.#log, { run: this.run.id, attempt: this.run.attempt })
  }

  /** A function without `this`, so that handlers can destructure it. */
  get transaction(): HandlerContext<unknown>['transaction'] {
    // The casts trust the handler: only it knows the types of the store's transaction handle and of its own result.
    return <T, Tx>(work: (tx: Tx) => T | Promise<T>) =>
      this.#transaction.commit(work as (tx: unknown) => unknown) as Promise<T>
  }
}
