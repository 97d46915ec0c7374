/**
 * What a store's clock says by now, as far as can be told without asking it: what it last said, and the time since then. A
 * guess decides nothing by itself: it travels with a write, and the store refuses it when it is not close enough.
 */
import type { Clock } from './clock.js'

/** How far a guess may be off. Less than anybody could tell from a request that took a little longer. */
export const GUESS_MS = 50

export class TimeGuess {
  readonly #clock: Clock
  #aheadMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The store has said what time it is. */
  learn(now: number): void {
    this.#aheadMs = now - this.#clock.monotonic()
  }

  get now(): number | undefined {
    return this.#aheadMs === undefined ? undefined : Math.floor(this.#clock.monotonic() + this.#aheadMs)
  }
}
