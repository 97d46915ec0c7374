import { type Message, messageOf } from '../../core/event.js'
import { type Logger, withFields } from '../../core/logger.js'
import type { ClaimedRun } from '../../core/store.js'
import type { HandlerContext } from '../definitions.js'
import type { Attempt } from './attempt.js'
import type { HandlerTransaction } from './handler-transaction.js'

/** What one call of a handler is given. Most handlers look at little of it, so the rest is made when it is asked for. */
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

  /** A function of its own, so that it can be taken out of the context. */
  get transaction(): HandlerContext<unknown>['transaction'] {
    // The store gives its own kind of handle, and the value comes back as JSON: only the handler knows both types.
    return <T, Tx>(work: (tx: Tx) => T | Promise<T>) =>
      this.#transaction.commit(work as (tx: unknown) => unknown) as Promise<T>
  }
}
