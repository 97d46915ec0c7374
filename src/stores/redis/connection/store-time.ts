/**
 * Where the store's clock must be by now, as far as this handle can tell: what it was when it was last heard of, and the
 * time that has passed since. No token is lower than that.
 *
 * A failover may lose the last tokens, and promote a server whose clock is behind. The client that asks it for a token then need not
 * have seen the lost ones: they were given out before the failover, by a clock that this handle has heard of, too.
 */
import type { Clock } from '../../../core/clock.js'

/** Two clocks need not run at the same speed: what has passed is counted a little short. */
const PACE = 0.999

export class StoreTime {
  readonly #clock: Clock
  #now = 0
  #heardAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** An answer said what time it is. The latest counts, of all masters that there are. */
  heard(now: number): void {
    const at = this.#clock.monotonic()
    if (now < this.#expected(at)) return
    this.#now = now
    this.#heardAt = at
  }

  /** The least that a token may be, for a caller that has seen so much. */
  floor(seen: number): number {
    return Math.max(seen, Math.floor(this.#expected(this.#clock.monotonic()) * 1_000))
  }

  #expected(at: number): number {
    return this.#now + (at - this.#heardAt) * PACE
  }
}
