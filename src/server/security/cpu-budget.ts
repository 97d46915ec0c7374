/**
 * CPU time that one caller's requests may take each second, so that one caller cannot keep a process busy. Checking a body
 * is measured. The rest is estimated, because it happens in turns that other requests share:
 *
 *     answer of 500 kB   →   25 ms: the rows are read, converted and written as JSON
 *
 * A request that begins within the budget completes, and its cost counts against the next ones.
 */
import { systemClock } from '../../core/clock.js'
import { type Caller, LOCAL } from './caller.js'
import { mustWait, RateLimit } from './rate-limit.js'

const MS_PER_ANSWERED_BYTE = 50e-6
/** A caller that paused may take this many seconds' worth at once. */
const BURST_S = 5

export class CpuBudget {
  readonly #limit: RateLimit

  constructor(msPerSecond: number) {
    this.#limit = new RateLimit(systemClock, { perSecond: msPerSecond, burst: msPerSecond * BURST_S })
  }

  /** Throws RATE_LIMITED if earlier requests of this caller have used up the budget. */
  check(caller: Caller): void {
    if (caller !== LOCAL) mustWait(this.#limit.wait(caller.name), 'expensive requests from this caller')
  }

  charge(caller: Caller, ms: number): void {
    if (caller !== LOCAL) this.#limit.charge(caller.name, ms)
  }

  chargeAnswer(caller: Caller, bytes: number): void {
    this.charge(caller, bytes * MS_PER_ANSWERED_BYTE)
  }

  /** Does the work and charges the time that it takes. */
  measured<Result>(caller: Caller, work: () => Result): Result {
    const startedAt = systemClock.monotonic()
    try {
      return work()
    } finally {
      this.charge(caller, systemClock.monotonic() - startedAt)
    }
  }
}
