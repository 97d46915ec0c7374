/**
 * What a store's clock says by now, as far as can be told without asking it: what it last said, and the time since then. A
 * guess decides nothing by itself: it travels with a write, and the store refuses it when it is not close enough. Where that
 * happens, because the store is far away or its clock was set, nothing is guessed for a while.
 */
import type { Clock } from './clock.js'

/** How far a guess may be off. Less than anybody could tell from a request that took a little longer. */
export const GUESS_MS = 50

const DOUBTED_MS = 10_000

export class TimeGuess {
  readonly #clock: Clock
  #doubtedUntil = Number.NEGATIVE_INFINITY
  #aheadMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * The store has said what time it is. Answers take a while to come, so the one that took the least counts, and no guess
   * is before what the store has said already; unless its clock was set back.
   */
  learn(now: number): number {
    const aheadMs = now - this.#clock.monotonic()
    const behindMs = (this.#aheadMs ?? Number.NEGATIVE_INFINITY) - aheadMs
    if (behindMs < 0 || behindMs > GUESS_MS) this.#aheadMs = aheadMs
    return now
  }

  /** A guess was of no use. */
  doubt(): void {
    this.#doubtedUntil = this.#clock.monotonic() + DOUBTED_MS
  }

  /** Undefined when there is nothing to go by. */
  get now(): number | undefined {
    const at = this.#clock.monotonic()
    return this.#aheadMs === undefined || at < this.#doubtedUntil ? undefined : Math.floor(at + this.#aheadMs)
  }
}
