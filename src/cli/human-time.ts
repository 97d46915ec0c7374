import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../time/calendar.js'

/** "Mon 2026-11-16 09:00:00 +01:00": sortable, and the weekday is what people look for first. */
export function wallClock(instant: number, timezone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  }).formatToParts(instant)
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value ?? ''
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00'
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`
  return `${part('weekday')} ${date} ${part('hour')}:${part('minute')}:${part('second')} ${offset}`
}

const UNITS = [
  ['year', 365.25 * DAY_MS],
  ['month', 30.44 * DAY_MS],
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', SECOND_MS],
] as const

/** "in 2 days", "in 45 seconds", "3 hours ago": the largest unit of which there are at least two, or one. */
export function relative(ms: number): string {
  const distance = Math.abs(ms)
  const [unit, size] = UNITS.find(([, each]) => distance >= each * 1.5) ?? ['second', SECOND_MS]
  const count = Math.round(distance / size)
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`
  if (count === 0) return 'now'
  return ms >= 0 ? `in ${words}` : `${words} ago`
}
