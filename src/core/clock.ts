/**
 * Time, injected. Nothing else in the project asks the runtime for the time or sets a timer, so that tests can turn
 * the clock and a day takes milliseconds.
 */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. Instances' clocks may be wrong: decisions use the store's time instead. */
  now(): number
  /** Milliseconds that only grow, for measuring. */
  monotonic(): number
  /** Calls back after a delay; the returned function cancels. */
  after(delayMs: number, callback: () => void): () => void
}

/** Timers of the runtime overflow at 2^31 ms and would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    // In whole milliseconds: the runtime keeps timers of equal length together, and fractions would all be apart.
    const timer = setTimeout(callback, Math.min(Math.max(Math.ceil(delayMs), 0), MAX_DELAY_MS))
    return () => clearTimeout(timer)
  },
}

/** Resolves after a delay, or as soon as the signal fires. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const finish = () => {
      cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = clock.after(delayMs, finish)
    signal?.addEventListener('abort', finish)
  })
}
