/**
 * A clock that stands still until it is turned. Turning it fires every timer on the way, in order, and lets what each
 * of them started come to rest before it goes on: a day of timers takes milliseconds and always happens the same way.
 */
import { setImmediate } from 'node:timers'
import type { Clock } from '../core/clock.js'
import { Heap, NOWHERE } from '../stores/memory/heap.js'

export interface ManualClock extends Clock {
  /** Lets time pass. Timers that fire may set new ones, which fire too if they fall within the stretch. */
  advance(ms: number): Promise<void>
  /** Sets the time of day, as an administrator would: timers and `monotonic` take no notice. */
  set(now: number): void
  /** A second clock that shares the timers and is wrong by so much. */
  skewed(ms: number): Clock
  /** Lets everything that can go on without time passing go on. */
  settle(): Promise<void>
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
  place: number
}

/**
 * `rest` resolves when everything that goes on has come to rest, as far as it can without time passing. By default that
 * is where chains of promises end; what waits for the outside world, such as a database, has to be waited for there.
 */
export function manualClock(startAt = Date.UTC(2026, 0, 1), rest: () => Promise<void> = nextTurn): ManualClock {
  const timers = new Heap<'place', Timer>('place', sooner)
  let elapsed = 0
  let offset = startAt
  let order = 0

  function after(delayMs: number, callback: () => void): () => void {
    order += 1
    const timer = { at: elapsed + Math.max(delayMs, 0), order, callback, place: NOWHERE }
    timers.push(timer)
    return () => {
      if (timer.place !== NOWHERE) timers.remove(timer)
    }
  }

  /** All timers of one instant fire before anything that they started goes on. */
  async function fireNext(): Promise<void> {
    const at = timers.first?.at ?? elapsed
    elapsed = Math.max(elapsed, at)
    while (timers.first?.at === at) timers.pop()?.callback()
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

/** Sooner first, and of those at one instant the one that was set first. */
function sooner(one: Timer, other: Timer): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at
}

/** Chains of promises run to their end before the runtime comes to its next turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
