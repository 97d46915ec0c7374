/**
 * Messages of an ordered sink that are to be retried and share a key with others, which must not overtake them. They wait
 * here instead of in the store: the store counts them as running, so they keep their keys. After the delay they are given
 * back, due at once. They are then older than all messages that came after them, whichever instance claims them. If this
 * process dies, the takeover has the same effect.
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
  /** Each ends the wait of its attempt. */
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

  /** An abort during the wait decides the outcome; a timeout was that of the failed call. */
  #outcomeNow(attempt: Attempt, retry: Retry): Outcome | undefined {
    const { reason } = attempt
    if (reason === undefined || reason === 'timeout') return { ...retry, delayMs: 0 }
    return outcomeOf(this.#sink, attempt, noAnswer(this.#sink, attempt))
  }
}
