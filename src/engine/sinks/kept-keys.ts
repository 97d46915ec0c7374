/**
 * Messages of an ordered sink that are to be tried again and share a key with others, who must not overtake them: so they
 * wait here, at work as far as the store knows, and with their keys. Given back they are due at once, and older than all
 * that came after them, whoever has them next; the same if this process dies.
 */
import type { Clock } from '../../core/clock.js'
import type { Outcome } from '../../core/run.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt } from '../runs/attempt.js'
import { noAnswer, outcomeOf } from './sink-outcome.js'

export class KeptKeys {
  readonly #sink: SinkDefinition
  readonly #clock: Clock
  readonly #write: (attempt: Attempt, outcome: Outcome | undefined) => void
  /** With how to end the wait of each. */
  readonly #waiting = new Map<Attempt, () => void>()

  constructor(sink: SinkDefinition, clock: Clock, write: (attempt: Attempt, outcome: Outcome | undefined) => void) {
    this.#sink = sink
    this.#clock = clock
    this.#write = write
  }

  get size(): number {
    return this.#waiting.size
  }

  keep(attempt: Attempt, retry: Outcome & { readonly kind: 'retry' }): void {
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

  /** What it was aborted for meanwhile counts, unless that was the call which it failed in. */
  #outcomeNow(attempt: Attempt, retry: Outcome & { readonly kind: 'retry' }): Outcome | undefined {
    const { reason } = attempt
    if (reason === undefined || reason === 'timeout') return { ...retry, delayMs: 0 }
    return outcomeOf(this.#sink, attempt, noAnswer(this.#sink, attempt))
  }
}
