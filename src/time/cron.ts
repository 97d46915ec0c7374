/**
 * A cron expression in a zone.
 *
 * Local matches are found segment by segment (a segment is a stretch of constant offset). Clock changes lie between
 * segments, so they are handled in one place: where a segment begins. If its first local time is later than where the
 * one before ended, the times between were skipped (a gap); if it is earlier, they come a second time (a repeat).
 */
import { DAY_MS, MAX_INSTANT, MIN_INSTANT, SECOND_MS } from './calendar.js'
import type { CronFields } from './cron-fields.js'
import { countLocal, nextLocal, previousLocal } from './cron-search.js'
import { describeCron } from './describe.js'
import type { Timeline } from './timeline.js'
import { MAX_OFFSET_MS, type Segment, type Zone } from './zone.js'

/** What a local time inside a gap does: fire at the gap's end (the default), or not at all. */
export const DST_GAPS = ['shift', 'skip'] as const
/** What a local time that comes twice does: fire at its first occurrence (the default), or at both. */
export const DST_REPEATS = ['first', 'both'] as const

/** What to do with local times that a clock change skipped or repeats. */
export interface DstRule {
  readonly gap?: (typeof DST_GAPS)[number]
  readonly repeat?: (typeof DST_REPEATS)[number]
}

/** Further from the search's start than any clock change can reach, a match rules out all local times before it. */
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
    // Written so that NaN ends it too.
    while (from <= MAX_INSTANT) {
      const segment = this.#zone.segmentAt(from)
      if (from === segment.start && this.#firesAtStart(segment)) return from
      const local = nextLocal(this.#fields, toSeconds(Math.max(from + segment.offset, this.#firstLocal(segment))))
      // Even when no local time is left, the clock may be turned back to one.
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
    this.#description ??= describeCron(this.#expression, this.#zone.name)
    return this.#description
  }

  /** The first local time of a segment that may fire: after a repeat, where the earlier segment left off. */
  #firstLocal(segment: Segment): number {
    const start = segment.start + segment.offset
    return this.#firstOnly ? Math.max(start, segment.start + segment.before) : start
  }

  /** Whether some time in the gap before a segment is due at the segment's start. A whole skipped day stays skipped. */
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

/** Ticks fall on whole seconds: the first one that can come after an instant, and the last one before it. */
function secondAfter(instant: number): number {
  return (Math.floor(instant / SECOND_MS) + 1) * SECOND_MS
}

function secondBefore(instant: number): number {
  return (Math.ceil(instant / SECOND_MS) - 1) * SECOND_MS
}

function toSeconds(ms: number): number {
  return ms / SECOND_MS
}
