/**
 * Holds failed messages of an ordered sink until their retry, so that later messages of the same key cannot overtake
 * them. The store counts a message that waits here as running, so it keeps its key. After the delay it goes back to the
 * store and is due at once. It is then the oldest message of its key, whichever instance claims it. If this process
 * dies, the takeover has the same effect.
 */
import type { Clock } from '../../core/clock.js'
import type { Outcome } from '../../core/runs/run.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt } from '../runs/attempt.js'
import { noAnswer, outcomeOf } from './sink-outcome.js'

type Retry = Outcome & { readonly kind: 'retry' }

export class OrderedRetries {
  readonly #sink: SinkDefinition
  readonly #clock: Clock
  readonly #write: (attempt: Attempt, outcome: Outcome | undefined) => void
  /** The waiting attempts, each with the function that ends its wait. */
  readonly #waiting = new Map<Attempt, () => void>()

  constructor(sink: SinkDefinition, clock: Clock, write: (attempt: Attempt, outcome: Outcome | undefined) => void) {
    this.#sink = sink
    this.#clock = clock
    this.#write = write
  }

  get size(): number {
    return this.#waiting.size
  }

  add(attempt: Attempt, retry: Retry): void {
    const giveBack = () => {
      cancel()
      if (!this.#waiting.delete(attempt)) return
      attempt.observe(undefined)
      attempt.end()
      this.#write(attempt, this.#outcomeNow(attempt, retry))
    }
    const cancel = this.#clock.after(retry.delayMs, giveBack)
    this.#waiting.set(attempt, giveBack)
    attempt.observe({ aborted: giveBack, fenced: giveBack })
  }

  giveAllBack(): void {
    for (const giveBack of [...this.#waiting.values()]) giveBack()
  }

  /** An abort during the wait decides the outcome. A timeout does not, because it ended the failed call. */
  #outcomeNow(attempt: Attempt, retry: Retry): Outcome | undefined {
    const { reason } = attempt
    if (reason === undefined || reason === 'timeout') return { ...retry, delayMs: 0 }
    return outcomeOf(this.#sink, attempt, noAnswer(this.#sink, attempt))
  }
}
