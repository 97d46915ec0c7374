/**
 * The only source of time and timers. Everything else takes a `Clock`, so tests can use a manual one, on which a day takes
 * milliseconds.
 */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. Instances' clocks may be wrong: decisions use the store's time instead. */
  now(): number
  /**
   * Milliseconds that never go back, for measuring durations. On the system clock all threads of a process share one count.
   */
  monotonic(): number
  /** Calls back after a delay. The returned function cancels the timer. */
  after(delayMs: number, callback: () => void): () => void
  /**
   * Like `after`, for a timer that keeps the process alive only until `unref`. A clock whose timers never keep the
   * process alive can omit it.
   */
  alarm?(delayMs: number, callback: () => void): Alarm
  /**
   * Calls back in the next turn of the event loop. A manual clock omits it: its time does not pass while code runs, so
   * code cannot block its loop.
   */
  nextTurn?(callback: () => void): void
}

/** A timer that keeps the process alive until `unref`, and again after `ref`. */
export interface Alarm {
  ref(): void
  unref(): void
  close(): void
}

export const NO_ALARM: Alarm = { ref() {}, unref() {}, close() {} }

/** The runtime's timers overflow at 2^31 ms and would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** `performance.now()` starts at 0 in each thread. With this offset the count is the same in all threads. */
const THREAD_OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => THREAD_OFFSET_MS + performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, wholeMs(delayMs))
    return () => clearTimeout(timer)
  },
  alarm: (delayMs, callback) => setTimeout(callback, wholeMs(delayMs)),
  nextTurn: (callback) => void setImmediate(callback),
}

/** Node.js keeps timers of equal length in one list; fractional delays would make a list each. */
function wholeMs(delayMs: number): number {
  return Math.min(Math.max(Math.ceil(delayMs), 0), MAX_DELAY_MS)
}

export function setAlarm(clock: Clock, delayMs: number, callback: () => void): Alarm {
  return clock.alarm?.(delayMs, callback) ?? { ...NO_ALARM, close: clock.after(delayMs, callback) }
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
