/**
 * A cron expression in a zone.
 *
 * A segment is a stretch of constant offset. The search goes from segment to segment, in local time. Clock changes lie
 * between segments, so the start of a segment is the only place that handles them. If a segment begins at a later local
 * time than the one before ended, the times between were skipped (a gap). If it begins at an earlier local time, the
 * times between come a second time (a repeat).
 */
import { DAY_MS, MAX_INSTANT, MIN_INSTANT, SECOND_MS } from '../calendar.js'
import { describeCron } from '../describe.js'
import type { Timeline } from '../timeline.js'
import { MAX_OFFSET_MS, type Segment, type Zone } from '../zone.js'
import type { CronFields } from './fields.js'
import { countLocal, nextLocal, previousLocal } from './search.js'

/** How a local time inside a gap fires: at the gap's end (the default), or not at all. */
export const DST_GAPS = ['shift', 'skip'] as const
/** How a local time that comes twice fires: the first time (the default), or both times. */
export const DST_REPEATS = ['first', 'both'] as const

/** What to do with local times that a clock change skipped or repeats. */
export interface DstRule {
  readonly gap?: (typeof DST_GAPS)[number]
  readonly repeat?: (typeof DST_REPEATS)[number]
}

/**
 * After this much of a segment, the search has seen all local times that a later clock change can repeat. So it can
 * jump to its next local match, past the segments in between.
 */
const BEYOND_ANY_CHANGE_MS = 3 * DAY_MS

export class CronTimeline implements Timeline {
  readonly kind = 'cron'
  readonly #expression: string
  readonly #fields: CronFields
  readonly #zone: Zone
  readonly #shiftsGaps: boolean
  readonly #firstOnly: boolean
  #description: string | undefined

  constructor(expression: string, fields: CronFields, zone: Zone, dst: DstRule | undefined) {
    this.#expression = expression
    this.#fields = fields
    this.#zone = zone
    const fixed = dst !== undefined || !fields.wildcard
    this.#shiftsGaps = fixed && dst?.gap !== 'skip'
    this.#firstOnly = fixed && dst?.repeat !== 'both'
  }

  next(after: number): number | undefined {
    let from = secondAfter(Math.max(after, MIN_INSTANT - 1))
    // The condition is false for NaN too, which ends the loop.
    while (from <= MAX_INSTANT) {
      const segment = this.#zone.segmentAt(from)
      if (from === segment.start && this.#firesAtStart(segment)) return from
      const local = nextLocal(this.#fields, toSeconds(Math.max(from + segment.offset, this.#firstLocal(segment))))
      // Without a later local match the search goes on, because the clock may be turned back to an earlier one.
      const found = local === undefined ? Number.POSITIVE_INFINITY : local * SECOND_MS - segment.offset
      if (found < segment.end) return found <= MAX_INSTANT ? found : undefined
      from = segment.end - from > BEYOND_ANY_CHANGE_MS ? Math.max(segment.end, found - 2 * MAX_OFFSET_MS) : segment.end
    }
    return undefined
  }

  previous(before: number): number | undefined {
    let from = secondBefore(Math.min(before, MAX_INSTANT + 1))
    while (from >= MIN_INSTANT) {
      const segment = this.#zone.segmentAt(from)
      const local = previousLocal(this.#fields, toSeconds(from + segment.offset))
      const found = local === undefined ? Number.NEGATIVE_INFINITY : local * SECOND_MS - segment.offset
      if (local !== undefined && found + segment.offset >= this.#firstLocal(segment)) {
        return found >= MIN_INSTANT ? found : undefined
      }
      if (this.#firesAtStart(segment)) return segment.start
      const last = segment.start - SECOND_MS
      from = from - segment.start > BEYOND_ANY_CHANGE_MS ? Math.min(last, found + 2 * MAX_OFFSET_MS) : last
    }
    return undefined
  }

  between(from: number, to: number, limit: number): number[] {
    const ticks: number[] = []
    let tick = this.next(from)
    while (tick !== undefined && tick <= to && ticks.length < limit) {
      ticks.push(tick)
      tick = this.next(tick)
    }
    return ticks
  }

  count(from: number, to: number): number {
    const end = secondAfter(Math.min(to, MAX_INSTANT))
    let count = 0
    let at = secondAfter(Math.max(from, MIN_INSTANT - 1))
    while (at < end) {
      const segment = this.#zone.segmentAt(at)
      const until = Math.min(segment.end, end)
      const first = toSeconds(Math.max(at + segment.offset, this.#firstLocal(segment)))
      count += countLocal(this.#fields, first, toSeconds(until + segment.offset))
      if (at === segment.start && this.#firesAtStart(segment) && !this.#matchesStart(segment)) count += 1
      at = until
    }
    return count
  }

  describe(): string {
    this.#description ??= describeCron(this.#expression, this.#fields, this.#zone.name)
    return this.#description
  }

  /**
   * The first local time of a segment that may fire. With `repeat: 'first'` that is not before the local time at which
   * the earlier segment ended.
   */
  #firstLocal(segment: Segment): number {
    const start = segment.start + segment.offset
    return this.#firstOnly ? Math.max(start, segment.start + segment.before) : start
  }

  /**
   * Whether a match in the gap before a segment fires at the segment's start. A gap of a whole day (a zone that crossed
   * the date line) fires nothing.
   */
  #firesAtStart(segment: Segment): boolean {
    const gap = segment.offset - segment.before
    if (!this.#shiftsGaps || gap <= 0 || gap >= DAY_MS) return false
    const local = nextLocal(this.#fields, toSeconds(segment.start + segment.before))
    return local !== undefined && local < toSeconds(segment.start + segment.offset)
  }

  #matchesStart(segment: Segment): boolean {
    const start = toSeconds(segment.start + segment.offset)
    return nextLocal(this.#fields, start) === start
  }
}

/** The first whole second after an instant: ticks fall on whole seconds. */
function secondAfter(instant: number): number {
  return (Math.floor(instant / SECOND_MS) + 1) * SECOND_MS
}

/** The last whole second before an instant. */
function secondBefore(instant: number): number {
  return (Math.ceil(instant / SECOND_MS) - 1) * SECOND_MS
}

function toSeconds(ms: number): number {
  return ms / SECOND_MS
}
