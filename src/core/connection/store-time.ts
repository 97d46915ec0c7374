/**
 * Where the store's clock must be by now, as far as this client can tell: the time that it last heard, plus the time that
 * has passed since. New tokens are not lower than that.
 *
 * A failover may lose the last tokens, and promote a server whose clock is behind. The client that asks it for a token need
 * not have seen the lost ones: they were given out before the failover, by a clock that this client has heard of, too.
 */
import type { Clock } from '../clock.js'

/** Two clocks need not run at the same speed, so the time that has passed is counted a little short. */
const PACE = 0.999

export class StoreTime {
  readonly #clock: Clock
  #now = 0
  #heardAt = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes the time in a server's answer. Of several servers, the one that is ahead counts. */
  heard(now: number): void {
    const at = this.#clock.monotonic()
    if (now < this.#expected(at)) return
    this.#now = now
    this.#heardAt = at
  }

  /** The least token that may be given out now. `seen`: the highest token that the caller knows. */
  floor(seen: number): number {
    return Math.max(seen, Math.floor(this.#expected(this.#clock.monotonic()) * 1_000))
  }

  /** 0 until the first answer. */
  #expected(at: number): number {
    return this.#now + Math.max(at - this.#heardAt, 0) * PACE
  }
}
