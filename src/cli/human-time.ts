import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../time/calendar.js'

/** "Mon 2026-11-16 09:00:00 +01:00": sortable, and the weekday is what people look for first. */
export function wallClock(instant: number, timezone: string): string {
  const part = partsOf(instant, timezone)
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00'
  return `${part('weekday')} ${dateOf(instant, timezone)} ${part('hour')}:${part('minute')}:${part('second')} ${offset}`
}

/** "2026-11-16", where it is that day. */
function dateOf(instant: number, timezone: string): string {
  const part = partsOf(instant, timezone)
  return `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`
}

/** One of each: making one takes milliseconds. */
const formats = new Map<string, Intl.DateTimeFormat>()

function partsOf(instant: number, timezone: string): (type: Intl.DateTimeFormatPartTypes) => string {
  const format = formats.get(timezone) ?? formatFor(timezone)
  formats.set(timezone, format)
  const parts = format.formatToParts(instant)
  return (type) => parts.find((each) => each.type === type)?.value ?? ''
}

function formatFor(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone, weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZoneName: 'longOffset' },
  })
}

const YEAR_MS = 365.25 * DAY_MS
const MONTH_MS = YEAR_MS / 12

/** From this long on, in these two units. */
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

/** "1 h 30 min", "3 days 4 h", "45 s", "2 years": what one would say, in at most two units. */
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

/** "in 1 h 30 min", "tomorrow, in 16 h 5 min", "3 h ago": how far an instant is from now, for somebody in a zone. */
export function relative(instant: number, now: number, timezone: string): string {
  const ms = instant - now
  if (Math.abs(ms) < SECOND_MS) return 'now'
  const length = lengthOf(Math.abs(ms))
  const words = ms > 0 ? `in ${length}` : `${length} ago`
  if (Math.abs(ms) >= DAY_MS) return words
  const [day, today] = [dateOf(instant, timezone), dateOf(now, timezone)]
  return day === today ? words : `${day > today ? 'tomorrow' : 'yesterday'}, ${words}`
}

/** As `relative`, without the name of the day: for columns. */
export function briefly(instant: number, now: number): string {
  const ms = instant - now
  if (Math.abs(ms) < SECOND_MS) return 'now'
  return ms > 0 ? `in ${lengthOf(ms)}` : `${lengthOf(-ms)} ago`
}

/** "340 ms", "1.2 s", "2 min 5 s": how long something took. */
export function took(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`
  return ms < MINUTE_MS ? `${(ms / SECOND_MS).toFixed(1)} s` : lengthOf(ms)
}
