import { checkOptions } from '../../core/checks/known-options.js'
import { systemClock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { SECOND_MS } from '../../time/calendar.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { openTimeline, type ParsedTimeline, parseTimeline, type TimelineSpec } from '../../time/timeline.js'
import { zone } from '../../time/zone.js'

/**
 * The ticks of a cron expression, an interval or a list of instants, as epoch milliseconds. Wherever an instant can be
 * given, it is a Date, epoch milliseconds or ISO 8601 text, and now by default; text without an offset is a local time of
 * the timeline's zone. Iterating gives the ticks from now on.
 */
export interface Timeline extends Iterable<number> {
  readonly kind: 'cron' | 'every' | 'at'
  /** The expression, for a timeline of cron. */
  readonly cron: string | undefined
  /** The zone, for a timeline of cron. */
  readonly timezone: string | undefined
  /** The first tick strictly after an instant. */
  next(after?: Instant): number | undefined
  /** The last tick strictly before an instant. */
  previous(before?: Instant): number | undefined
  /** The next ticks, in order. Fewer than `count` if the timeline ends. */
  nextRuns(count: number, after?: Instant): number[]
  /** The previous ticks, newest first. */
  previousRuns(count: number, before?: Instant): number[]
  /** Whether a tick falls in the second of an instant. */
  match(instant?: Instant): boolean
  /** The ticks after `from`, up to and including `to`. Without a `limit`, more than 1,000 are refused. */
  between(from: Instant, to: Instant, limit?: number): number[]
  /** How many ticks come after `from`, up to and including `to`; counted, not enumerated. */
  count(from: Instant, to: Instant): number
  /** In words: "At 09:00, Monday through Friday, Europe/Berlin time". */
  describe(): string
  /** The cron expression; `@every …` and `@at …` for the other kinds. */
  toString(): string
}

const MAX_UNLIMITED = 1_000
const OPTIONS = {
  cron: ['cron', 'timezone', 'dst'],
  every: ['every'],
  at: ['at', 'timezone'],
} as const

/**
 * Opens a timeline: `timeline('0 9 * * 1-5')`, `timeline({ cron, timezone, dst })`, `timeline({ every: '15m' })`. Intervals
 * count from `anchor`, which is 1970 by default.
 */
export function timeline(spec: TimelineSpec, anchor: Instant = 0): Timeline {
  if (typeof spec === 'object' && spec !== null) checkFields(spec)
  const parsed = parseTimeline(spec)
  const line = openTimeline(parsed, anchor === 0 ? 0 : instantMs(anchor))
  const timezone = 'cron' in parsed ? zone(parsed.timezone ?? 'UTC').name : undefined
  const at = (instant: Instant | undefined) =>
    instant === undefined ? systemClock.now() : instantMs(instant, zone(timezone ?? 'UTC'))
  const next = (after?: Instant) => line.next(at(after))

  function runs(count: number, step: (from: number) => number | undefined, from: number): number[] {
    const ticks: number[] = []
    let tick = step(from)
    while (tick !== undefined && ticks.length < checkCount(count)) {
      ticks.push(tick)
      tick = step(tick)
    }
    return ticks
  }

  return {
    kind: line.kind,
    cron: 'cron' in parsed ? parsed.cron : undefined,
    timezone,
    next,
    previous: (before) => line.previous(at(before)),
    nextRuns: (count, after) => runs(count, (from) => line.next(from), at(after)),
    previousRuns: (count, before) => runs(count, (from) => line.previous(from), at(before)),
    match(instant) {
      const second = Math.floor(at(instant) / SECOND_MS) * SECOND_MS
      const tick = line.next(second - 1)
      return tick !== undefined && tick < second + SECOND_MS
    },
    between(from, to, limit) {
      const ticks = line.between(at(from), at(to), limit === undefined ? MAX_UNLIMITED + 1 : checkCount(limit))
      if (limit !== undefined || ticks.length <= MAX_UNLIMITED) return ticks
      throw failure('OPTION_INVALID', `between(): there are more than ${MAX_UNLIMITED} ticks; give a limit`)
    },
    count: (from, to) => line.count(at(from), at(to)),
    describe: () => line.describe(),
    toString: () => textOf(parsed),
    *[Symbol.iterator]() {
      for (let tick = next(); tick !== undefined; tick = line.next(tick)) yield tick
    },
  }
}

/** Whether text or an object is a timeline. `timeline` throws an error that says what is wrong with it. */
export function isValid(spec: TimelineSpec): boolean {
  try {
    timeline(spec)
    return true
  } catch {
    return false
  }
}

/** A misspelt `timezone` would silently mean UTC. */
function checkFields(spec: object): void {
  const kind = (['cron', 'every', 'at'] as const).find((each) => Object.hasOwn(spec, each))
  if (kind === undefined) return
  for (const name of ['tz', 'zone', 'timeZone']) {
    if (!Object.hasOwn(spec, name)) continue
    throw failure('OPTION_INVALID', `timeline(): ${quote(name)} is not an option; did you mean "timezone"?`)
  }
  checkOptions(spec, [...OPTIONS[kind], 'cron', 'every', 'at'], 'timeline()')
}

function checkCount(count: number): number {
  if (Number.isSafeInteger(count) && count >= 0) return count
  throw failure('OPTION_INVALID', `a number of ticks is ${quote(count)}; it must be a whole number, 0 or more`)
}

function textOf(parsed: ParsedTimeline): string {
  if ('cron' in parsed) return parsed.cron
  if ('every' in parsed) return `@every ${parsed.every}ms`
  return `@at ${parsed.at.map((instant) => new Date(instant).toISOString()).join(' ')}`
}
