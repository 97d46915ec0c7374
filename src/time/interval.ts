import { MAX_INSTANT, MIN_INSTANT, SECOND_MS } from './calendar.js'
import { type Duration, describeDuration, durationMs } from './duration.js'
import { quote, timeError } from './error.js'
import type { Timeline } from './timeline.js'

/** Parses the length of an interval. Less than a second is refused, because two ticks in one second would share an id. */
export function intervalMs(every: Duration): number {
  const ms = durationMs(every)
  if (ms < SECOND_MS) {
    throw timeError('INTERVAL_TOO_SHORT', `interval ${quote(every)} is too short: at least one second`)
  }
  return ms
}

/** Ticks at anchor + n × interval, n ≥ 1. Each tick is computed from the anchor, so the ticks never drift. */
export class IntervalTimeline implements Timeline {
  readonly kind = 'every'
  readonly #interval: number
  readonly #anchor: number

  constructor(interval: number, anchor: number) {
    this.#interval = interval
    this.#anchor = anchor
  }

  next(after: number): number | undefined {
    const tick = this.#tick(Math.max(Math.floor((after - this.#anchor) / this.#interval) + 1, 1))
    return tick <= MAX_INSTANT ? tick : undefined
  }

  previous(before: number): number | undefined {
    const number = Math.ceil((Math.min(before, MAX_INSTANT + 1) - this.#anchor) / this.#interval) - 1
    return number >= 1 && this.#tick(number) >= MIN_INSTANT ? this.#tick(number) : undefined
  }

  between(from: number, to: number, limit: number): number[] {
    const ticks: number[] = []
    let tick = this.next(from)
    const last = Math.min(to, MAX_INSTANT)
    while (tick !== undefined && tick <= last && ticks.length < limit) {
      ticks.push(tick)
      tick += this.#interval
    }
    return ticks
  }

  count(from: number, to: number): number {
    return Math.max(this.#ticksUpTo(Math.min(to, MAX_INSTANT)) - this.#ticksUpTo(from), 0)
  }

  describe(): string {
    const length = describeDuration(this.#interval)
    return `Every ${/^1 \w+$/.test(length) ? length.slice(2) : length}`
  }

  #tick(number: number): number {
    return this.#anchor + number * this.#interval
  }

  #ticksUpTo(instant: number): number {
    return Math.max(Math.floor((instant - this.#anchor) / this.#interval), 0)
  }
}
