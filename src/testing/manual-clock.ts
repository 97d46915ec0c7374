/**
 * A clock that moves only when a test calls `advance`, which fires all timers in order. After each instant `advance`
 * waits until the code that the timers started has settled. So a day takes milliseconds, and a test gives the same
 * result each time.
 */
import { setImmediate } from 'node:timers'
import type { Clock } from '../core/clock.js'
import { Heap } from '../stores/memory/schema/heap.js'

export interface ManualClock extends Clock {
  /** Lets time pass. Timers that are set during that time fire too, if they are due before its end. */
  advance(ms: number): Promise<void>
  /** Sets the wall clock, as an administrator would. Timers and `monotonic` are not affected. */
  set(now: number): void
  /** A clock with the same timers whose wall clock is wrong by this much. */
  skewed(ms: number): Clock
  /** Waits until all code has run that does not wait for time to pass. */
  settle(): Promise<void>
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/**
 * `rest` resolves when all code has run that does not wait for time to pass. By default it waits for chains of
 * promises. Code that waits for other processes, such as a database, needs another `rest`.
 */
export function manualClock(startAt = Date.UTC(2026, 0, 1), rest: () => Promise<void> = nextTurn): ManualClock {
  const timers = new Heap<Timer>(sooner)
  let elapsed = 0
  let offset = startAt
  let order = 0

  function after(delayMs: number, callback: () => void): () => void {
    order += 1
    const timer = { at: elapsed + Math.max(delayMs, 0), order, callback }
    timers.push(timer)
    return () => timers.remove(timer)
  }

  /** Fires all timers of the next instant, then waits for the code that they started. */
  async function fireNext(): Promise<void> {
    const at = timers.first?.at ?? elapsed
    elapsed = Math.max(elapsed, at)
    for (let timer = timers.first; timer?.at === at; timer = timers.first) {
      timers.remove(timer)
      timer.callback()
    }
    await rest()
  }

  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    after,
    async advance(ms) {
      const end = elapsed + ms
      await rest()
      while (timers.first !== undefined && timers.first.at <= end) await fireNext()
      elapsed = end
      await rest()
    },
    set(now) {
      offset = now - elapsed
    },
    skewed: (ms) => ({ now: () => offset + elapsed + ms, monotonic: () => elapsed, after }),
    settle: rest,
  }
}

/** Whether a timer fires before another: by instant, then by the order in which they were set. */
function sooner(one: Timer, other: Timer): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at
}

/** Chains of promises end before the next turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
