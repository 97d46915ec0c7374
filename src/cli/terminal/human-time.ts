import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../time/calendar.js'
import { zone } from '../../time/zone.js'

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

/** "Mon 2026-11-16 09:00:00 +01:00" */
export function wallClock(instant: number, timezone: string): string {
  const { offset } = zone(timezone).segmentAt(instant)
  const local = new Date(instant + offset)
  const [date, time = ''] = local.toISOString().split('T')
  return `${WEEKDAYS[local.getUTCDay()]} ${date} ${time.slice(0, 8)} ${offsetText(offset)}`
}

/** The local time and offset of an instant: "2026-11-16T09:00:00" and "+01:00". */
export function localTime(instant: number, timezone: string): { readonly local: string; readonly offset: string } {
  const { offset } = zone(timezone).segmentAt(instant)
  return { local: new Date(instant + offset).toISOString().slice(0, 19), offset: offsetText(offset) }
}

/** "+01:00", or "-00:44:30" for old offsets with seconds. */
function offsetText(offset: number): string {
  const text = new Date(Math.abs(offset)).toISOString().slice(11, 19)
  return `${offset < 0 ? '-' : '+'}${text.endsWith(':00') ? text.slice(0, 5) : text}`
}

/** The local date, "2026-11-16". */
function dateOf(instant: number, timezone: string): string {
  return new Date(instant + zone(timezone).segmentAt(instant).offset).toISOString().slice(0, 10)
}

const YEAR_MS = 365.25 * DAY_MS
const MONTH_MS = YEAR_MS / 12

/** Each row: the length from which it applies, and the one or two units in which such lengths are shown. */
const SCALES = [
  [YEAR_MS, ['year', YEAR_MS], ['month', MONTH_MS]],
  [2 * MONTH_MS, ['month', MONTH_MS], undefined],
  [7 * DAY_MS, ['day', DAY_MS], undefined],
  [DAY_MS, ['day', DAY_MS], ['h', HOUR_MS]],
  [HOUR_MS, ['h', HOUR_MS], ['min', MINUTE_MS]],
  [10 * MINUTE_MS, ['min', MINUTE_MS], undefined],
  [MINUTE_MS, ['min', MINUTE_MS], ['s', SECOND_MS]],
] as const

const WORDS = new Set<string>(['year', 'month', 'day'])

/** "1 h 30 min", "3 days 4 h", "45 s", "2 years": at most two units. */
function lengthOf(ms: number): string {
  const scale = SCALES.find(([from]) => ms >= from)
  if (scale === undefined) return `${Math.max(Math.floor(ms / SECOND_MS), 0)} s`
  const [, [unit, size], smaller] = scale
  const count = Math.floor(ms / size)
  const rest = smaller === undefined ? 0 : Math.floor((ms - count * size) / smaller[1])
  return smaller === undefined || rest === 0
    ? counted(count, unit)
    : `${counted(count, unit)} ${counted(rest, smaller[0])}`
}

function counted(count: number, unit: string): string {
  return `${count} ${WORDS.has(unit) && count !== 1 ? `${unit}s` : unit}`
}

/** "in 1 h 30 min", "tomorrow, in 16 h 5 min", "3 h ago": the distance from now; the zone decides the day. */
export function relative(instant: number, now: number, timezone: string): string {
  const ms = instant - now
  if (Math.abs(ms) < SECOND_MS) return 'now'
  const length = lengthOf(Math.abs(ms))
  const words = ms > 0 ? `in ${length}` : `${length} ago`
  if (Math.abs(ms) >= DAY_MS) return words
  const [day, today] = [dateOf(instant, timezone), dateOf(now, timezone)]
  return day === today ? words : `${day > today ? 'tomorrow' : 'yesterday'}, ${words}`
}

/** `relative` without the day, for table columns. */
export function briefly(instant: number, now: number): string {
  const ms = instant - now
  if (Math.abs(ms) < SECOND_MS) return 'now'
  return ms > 0 ? `in ${lengthOf(ms)}` : `${lengthOf(-ms)} ago`
}

/** A measured duration: "340 ms", "1.2 s", "2 min 5 s". */
export function took(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`
  return ms < MINUTE_MS ? `${(ms / SECOND_MS).toFixed(1)} s` : lengthOf(ms)
}
