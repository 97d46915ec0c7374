/**
 * Time, injected. Nothing else in the project asks the runtime for the time or sets a timer, so that tests can turn
 * the clock and a day takes milliseconds.
 */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. Instances' clocks may be wrong: decisions use the store's time instead. */
  now(): number
  /** Milliseconds that only grow, for measuring. The system clock's are the same in all threads of the process. */
  monotonic(): number
  /** Calls back after a delay; the returned function cancels. */
  after(delayMs: number, callback: () => void): () => void
  /** As `after`, for a timer that stays set while what it is for comes and goes. Clocks that keep no process alive need none. */
  alarm?(delayMs: number, callback: () => void): Alarm
  /**
   * Calls back in the next turn of the event loop. Only a clock of the runtime has it: where it is absent, time stands
   * still while code runs, so that no code can block the loop.
   */
  nextTurn?(callback: () => void): void
}

/** A timer that keeps the process alive only while it is told to, as it is at first. */
export interface Alarm {
  ref(): void
  unref(): void
  close(): void
}

export const NO_ALARM: Alarm = { ref() {}, unref() {}, close() {} }

/** Timers of the runtime overflow at 2^31 ms and would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** What this thread's own count of milliseconds lacks to the process's. */
const THREAD_BEGAN_AT = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => THREAD_BEGAN_AT + performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, wholeMs(delayMs))
    return () => clearTimeout(timer)
  },
  alarm: (delayMs, callback) => setTimeout(callback, wholeMs(delayMs)),
  nextTurn: (callback) => void setImmediate(callback),
}

/** In whole milliseconds: the runtime keeps timers of equal length together, and fractions would all be apart. */
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
