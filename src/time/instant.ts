import { DAY_MS, daysFromCivil, daysInMonth, MAX_INSTANT, MIN_INSTANT, SECOND_MS } from './calendar.js'
import { quote, timeError } from './error.js'
import { instantOfLocal, type Zone } from './zone.js'

/** A moment: a Date, a number of epoch milliseconds, ISO 8601 text, or text of unix seconds (as in `@at 1647067401`). */
export type Instant = Date | string | number

const ISO =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$/i
const UNIX = /^-?[0-9]{1,15}(?:\.[0-9]{1,3})?$/
/** A number in text from this on (as seconds: the year 5138) was probably meant as milliseconds. */
const MILLISECONDS_SUSPECTED = 1e11
/** A number below this was probably meant as seconds. */
const YEAR_1980 = Date.UTC(1980, 0, 1)

/**
 * Parses to epoch milliseconds. Text without an offset is a local time of `zone`. Without a zone it is refused, because
 * it would mean different instants on different machines.
 */
export function instantMs(value: Instant, zone?: Zone): number {
  if (value instanceof Date) return inRange(value.getTime(), value)
  if (typeof value === 'number') return fromMilliseconds(value)
  if (typeof value !== 'string') throw syntax(value)
  const text = value.trim()
  if (text.length <= 20 && UNIX.test(text)) return fromSeconds(Number(text), value)
  const iso = text.length <= 40 ? ISO.exec(text) : null
  if (iso === null) throw syntax(value)
  return fromIso(iso, value, zone)
}

function fromMilliseconds(value: number): number {
  if (Math.abs(value) >= YEAR_1980 || Number.isNaN(value)) return inRange(Math.round(value), value)
  throw timeError(
    'INSTANT_OUT_OF_RANGE',
    `instant ${quote(value)} looks like seconds: numbers are epoch milliseconds (${Math.round(value * SECOND_MS)}), and instants before 1980 are written as ISO 8601 text`,
  )
}

function fromSeconds(seconds: number, given: string): number {
  if (Math.abs(seconds) < MILLISECONDS_SUSPECTED) return inRange(Math.round(seconds * SECOND_MS), given)
  throw timeError(
    'INSTANT_OUT_OF_RANGE',
    `instant ${quote(given)} looks like milliseconds: text is unix seconds; pass milliseconds as a number, or write ISO 8601 text`,
  )
}

function fromIso(parts: RegExpExecArray, given: string, zone: Zone | undefined): number {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 59) {
    throw timeError('INSTANT_OUT_OF_RANGE', `instant ${quote(given)} is not a date and time of the calendar`)
  }
  const fraction = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'))
  const local = daysFromCivil(year, month, day) * DAY_MS + (hour * 3_600 + minute * 60 + second) * SECOND_MS + fraction
  const offset = parts[8]
  if (offset !== undefined) return inRange(local - offsetMs(offset, given), given)
  if (zone !== undefined) return inRange(instantOfLocal(zone, local), given)
  throw timeError(
    'INSTANT_SYNTAX',
    `instant ${quote(given)} has no offset: end it with "Z" or "+02:00", or give a timezone`,
  )
}

function offsetMs(text: string, given: string): number {
  if (text.length === 1) return 0
  const hours = Number(text.slice(1, 3))
  const minutes = Number(text.slice(-2))
  if (hours > 23 || minutes > 59)
    throw timeError('INSTANT_OUT_OF_RANGE', `instant ${quote(given)}: offset is out of range`)
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

function inRange(ms: number, given: Instant): number {
  if (ms >= MIN_INSTANT && ms <= MAX_INSTANT) return ms
  throw timeError('INSTANT_OUT_OF_RANGE', `instant ${quote(given)} is out of range: years 1 to 9999`)
}

function syntax(value: unknown) {
  return timeError(
    'INSTANT_SYNTAX',
    `instant ${quote(value)} is not understood: write ISO 8601 ("2026-03-01T09:00:00Z"), or epoch milliseconds as a number`,
  )
}

/** ISO 8601 text in UTC for people, without a fraction of 0. */
export function isoText(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z')
}
