/**
 * Starting runs comes first when more is due than one claim takes. The settler and the ticker wait until all that is due
 * has been started, or for `BURST_MS`: a backlog that takes longer is worked off with everything going on at once.
 */
import type { Clock } from '../../core/clock.js'

export const BURST_MS = 300

export class BurstPriority {
  readonly #clock: Clock
  #state: 'calm' | 'burst' | 'too long' = 'calm'
  #cancelLimit = () => {}
  #waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** There is more to start. */
  begin(): void {
    if (this.#state !== 'calm') return
    this.#state = 'burst'
    this.#cancelLimit = this.#clock.after(BURST_MS, () => this.#leave('too long'))
  }

  /** All slots are taken: attempts that have ended must be settled to free one. */
  giveWay(): void {
    if (this.#state === 'burst') this.#leave('too long')
  }

  /** There is nothing more to start. */
  end(): void {
    if (this.#state !== 'calm') this.#leave('calm')
  }

  /** Resolves at once when there is no burst. */
  over(): Promise<void> {
    if (this.#state !== 'burst') return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #leave(state: 'calm' | 'too long'): void {
    this.#cancelLimit()
    this.#state = state
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
