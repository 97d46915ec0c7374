import type { Clock } from '../../src/core/clock.js'
import type { Random } from '../../src/testing/random.js'

/**
 * Delays timers by up to 2 ms: timers of different processes never fire at exactly the same instant, nor always in the
 * same order.
 */
export function withLateTimers(clock: Clock, random: Random): Clock {
  return { ...clock, after: (delayMs, callback) => clock.after(delayMs + 2 * random.next(), callback) }
}
