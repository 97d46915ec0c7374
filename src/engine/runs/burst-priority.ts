/**
 * In a burst, more runs are due than one claim takes. Starting them has priority: the settler and the ticker wait until
 * all due runs have started, but at most for `BURST_MS`. A backlog that takes longer is worked off while settling and
 * recording go on.
 */
import type { Clock } from '../../core/clock.js'

export const BURST_MS = 300

export class BurstPriority {
  readonly #clock: Clock
  #state: 'calm' | 'burst' | 'yielded' = 'calm'
  #cancelLimit = () => {}
  #waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Called after a full claim: more runs may be due. */
  begin(): void {
    if (this.#state !== 'calm') return
    this.#state = 'burst'
    this.#cancelLimit = this.#clock.after(BURST_MS, () => this.#leave('yielded'))
  }

  /** Called when all slots are taken: only settling ended attempts frees one. */
  giveWay(): void {
    if (this.#state === 'burst') this.#leave('yielded')
  }

  /** Called when all due runs have been started. */
  end(): void {
    if (this.#state !== 'calm') this.#leave('calm')
  }

  /** Resolves when no burst delays the settler and the ticker. */
  over(): Promise<void> {
    if (this.#state !== 'burst') return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #leave(state: 'calm' | 'yielded'): void {
    this.#cancelLimit()
    this.#state = state
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
