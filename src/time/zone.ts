/**
 * Zones as segments of constant offset.
 *
 * Offsets come from Intl. A call takes microseconds, so each zone caches its segments. UTC is divided into chunks of
 * about a year. A chunk is sampled every five days, and each change of offset is then found to the second by bisection.
 * (The two closest changes in the zone database are seven days apart; a test samples every zone finely to check that.)
 *
 * Only the years 1800 to 2128 are read from Intl. Before them a zone has one offset. After them its rules depend only on
 * the weekday on which a year begins and on whether it is a leap year, so a later year is a copy of one from 2101 to 2128:
 *
 *     1 July 5000 (begins on a Wednesday, common)   →   1 July 2105
 */
import { civilFromDays, DAY_MS, daysFromCivil, isLeapYear, SECOND_MS, weekdayOf } from './calendar.js'
import { quote, timeError } from './error.js'

/** A stretch of UTC with one offset, and the offset that was in force just before it. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly offset: number
  readonly before: number
}

export interface Zone {
  readonly name: string
  /** The segment that holds an instant (epoch milliseconds). */
  segmentAt(instant: number): Segment
}

const CHUNK_MS = 400 * DAY_MS
const SAMPLE_MS = 5 * DAY_MS
/** No clock change repeats local times for longer than this. */
const LOOK_BACK_MS = 2 * DAY_MS
/** The first chunk that Intl is asked about begins in 1799, before any zone changed its offset. */
const FIRST_CHUNK = Math.floor((daysFromCivil(1800, 1, 1) * DAY_MS) / CHUNK_MS)
const LAST_YEAR = 2_128
const YEARS_END = daysFromCivil(LAST_YEAR + 1, 1, 1) * DAY_MS

/** The years 2101 to 2128 by kind: one for each weekday, common and leap. */
const TWINS: ReadonlyMap<number, number> = new Map(
  Array.from({ length: 28 }, (_, at) => [kindOf(LAST_YEAR - at), LAST_YEAR - at]),
)

function kindOf(year: number): number {
  return weekdayOf(daysFromCivil(year, 1, 1)) * 2 + (isLeapYear(year) ? 1 : 0)
}

class FixedZone implements Zone {
  readonly name: string
  readonly #all: Segment

  constructor(name: string, offset: number) {
    this.name = name
    this.#all = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY, offset, before: offset }
  }

  segmentAt(): Segment {
    return this.#all
  }
}

class IntlZone implements Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #chunks = new Map<number, readonly Segment[]>()
  #last: Segment | undefined

  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset', year: 'numeric' })
    this.name = spelled(name, this.#format.resolvedOptions().timeZone)
  }

  segmentAt(instant: number): Segment {
    const last = this.#last
    if (last !== undefined && instant >= last.start && instant < last.end) return last
    const found = instant < YEARS_END ? this.#find(instant) : this.#findLate(instant)
    this.#last = found
    return found
  }

  /** Finds a segment after the years that are read, by the same day of the year's twin. */
  #findLate(instant: number): Segment {
    const year = civilFromDays(Math.floor(instant / DAY_MS)) >> 9
    const twin = TWINS.get(kindOf(year)) as number
    const [from, to] = [daysFromCivil(twin, 1, 1) * DAY_MS, daysFromCivil(twin + 1, 1, 1) * DAY_MS]
    const shift = daysFromCivil(year, 1, 1) * DAY_MS - from
    const { start, end, offset, before } = this.#find(instant - shift)
    return {
      ...{ start: Math.max(start, from) + shift, end: Math.min(end, to) + shift, offset },
      // No zone changes its offset at the turn of a year.
      before: start < from ? offset : before,
    }
  }

  #find(instant: number): Segment {
    const index = Math.floor(instant / CHUNK_MS)
    if (index < FIRST_CHUNK) return this.#firstSegment()
    let segments = this.#chunks.get(index)
    if (segments === undefined) {
      segments = this.#survey(index * CHUNK_MS, (index + 1) * CHUNK_MS)
      this.#chunks.set(index, segments)
    }
    let at = segments.length - 1
    while (at > 0 && instant < (segments[at] as Segment).start) at -= 1
    return segments[at] as Segment
  }

  #firstSegment(): Segment {
    const end = FIRST_CHUNK * CHUNK_MS
    const offset = this.#offsetAt(end)
    return { start: Number.NEGATIVE_INFINITY, end, offset, before: offset }
  }

  #survey(from: number, to: number): Segment[] {
    const segments: Segment[] = []
    let offset = this.#offsetAt(from)
    // A chunk may begin inside a repeated hour, shortly after a change. Its first segment needs the offset before that change.
    let before = this.#offsetAt(from - LOOK_BACK_MS)
    let start = before === offset ? from : this.#changeBetween(from - LOOK_BACK_MS, from, before)
    for (let sample = from; sample < to; sample += SAMPLE_MS) {
      const next = Math.min(sample + SAMPLE_MS, to - SECOND_MS)
      const nextOffset = this.#offsetAt(next)
      if (nextOffset === offset) continue
      const change = this.#changeBetween(sample, next, offset)
      segments.push({ start, end: change, offset, before })
      before = offset
      start = change
      offset = nextOffset
    }
    segments.push({ start, end: to, offset, before })
    return segments
  }

  /** The first second in (low, high] whose offset is no longer `offset`. */
  #changeBetween(low: number, high: number, offset: number): number {
    let same = low
    let other = high
    while (other - same > SECOND_MS) {
      const middle = same + Math.floor((other - same) / 2 / SECOND_MS) * SECOND_MS
      if (this.#offsetAt(middle) === offset) same = middle
      else other = middle
    }
    return other
  }

  /** Parses the end of Intl's text: "GMT+05:30", "GMT-00:44:30" or "GMT". */
  #offsetAt(instant: number): number {
    const text = this.#format.format(instant)
    const at = text.lastIndexOf('GMT') + 3
    if (at >= text.length) return 0
    const sign = text.charCodeAt(at) === 43 ? 1 : -1
    const hours = Number(text.slice(at + 1, at + 3))
    const minutes = Number(text.slice(at + 4, at + 6))
    const seconds = text.length > at + 6 ? Number(text.slice(at + 7, at + 9)) : 0
    return sign * (hours * 3_600 + minutes * 60 + seconds) * SECOND_MS
  }
}

/** Intl resolves "Europe/Kyiv" to the older name "Europe/Kiev". Only the case of a name is taken from it. */
function spelled(given: string, resolved: string): string {
  if (given.toLowerCase() === resolved.toLowerCase() || resolved === 'UTC') return resolved
  return given === given.toLowerCase() ? given.replace(/(?<![a-z])[a-z]/g, (letter) => letter.toUpperCase()) : given
}

const UTC: Zone = new FixedZone('UTC', 0)
const zones = new Map<string, Zone>()

/** The zone of an IANA name in any case, or of a fixed offset such as "+05:30". */
export function zone(name: string): Zone {
  if (name === 'UTC') return UTC
  const key = typeof name === 'string' ? name.toLowerCase() : ''
  const known = zones.get(key)
  if (known !== undefined) return known
  const opened = openZone(name, key)
  zones.set(key, opened)
  return opened
}

function openZone(name: string, key: string): Zone {
  const offset = OFFSET.exec(key)
  // Intl accepts "+02:00" only in newer runtimes, and a name must mean the same on every instance.
  if (offset !== null) return fixedZone(name, offset)
  if (!/^[a-z][a-z0-9_+/-]{1,63}$/.test(key)) throw unknownZone(name)
  try {
    const opened = new IntlZone(name)
    return opened.name === 'UTC' ? UTC : opened
  } catch (cause) {
    throw unknownZone(name, cause)
  }
}

const OFFSET = /^([+-])(0\d|1[0-4]):([0-5]\d)$/

function fixedZone(name: string, [, sign, hours, minutes]: RegExpExecArray): Zone {
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  return offset === 0 ? UTC : new FixedZone(name, sign === '-' ? -offset : offset)
}

function unknownZone(name: string, cause?: unknown) {
  return timeError(
    'ZONE_UNKNOWN',
    `time zone ${quote(name)} is unknown: use an IANA name such as "Europe/Berlin", "UTC", or an offset such as "+05:30"`,
    cause === undefined ? undefined : { cause },
  )
}

/** No zone is or was further from UTC than this. */
export const MAX_OFFSET_MS = 16 * 3_600_000

/**
 * The instant of a local time. A local time that comes twice means the first time, and a local time inside a gap means
 * the end of the gap.
 */
export function instantOfLocal(zone: Zone, local: number): number {
  let segment = zone.segmentAt(local - MAX_OFFSET_MS)
  while (local - segment.offset >= segment.end) segment = zone.segmentAt(segment.end)
  return Math.max(local - segment.offset, segment.start)
}
