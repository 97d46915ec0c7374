import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './calendar.js'
import { quote, timeError } from './error.js'

/** "15m", "1h30m", "PT1H30M", or a number of milliseconds. */
export type Duration = string | number

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
}

/** Units of the calendar, in both notations: their length depends on when they start. */
const CALENDAR_UNIT = /^(?:\d+(?:\.\d+)?)(?:mo|mon|month|months|y|yr|year|years)$/i
const SHORT = /^(?:\d{1,15}(?:\.\d{1,9})?(?:ms|[smhdw]))+$/
const SHORT_PART = /(\d+(?:\.\d+)?)(ms|[smhdw])/g
const ISO = /^P(?:(\d{1,15})W)?(?:(\d{1,15})D)?(?:T(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15}(?:\.\d{1,9})?)S)?)?$/
const ISO_CALENDAR = /^P(?:\d+[A-Z])*?\d+[YM]/

const MAX_TEXT = 64
/** A hundred years. A longer duration is a mistake, and this one is far below 2^53 ms. */
const MAX_DURATION_MS = 36_525 * DAY_MS

/** Parses a duration to whole milliseconds. A day is 24 hours; months and years are refused. */
export function durationMs(value: Duration): number {
  const ms = typeof value === 'number' ? value : parse(value)
  if (!Number.isFinite(ms) || ms < 0 || ms > MAX_DURATION_MS) {
    throw timeError('DURATION_OUT_OF_RANGE', `duration ${quote(value)} is out of range: from 0 to 36525 days`)
  }
  return Math.round(ms)
}

function parse(value: string): number {
  const text = typeof value === 'string' && value.length <= MAX_TEXT ? value.trim() : ''
  if (CALENDAR_UNIT.test(text) || ISO_CALENDAR.test(text.toUpperCase())) {
    throw timeError(
      'DURATION_CALENDAR_UNIT',
      `duration ${quote(value)}: months and years differ in length; use days ("30d") or a cron expression ("@monthly")`,
    )
  }
  if (SHORT.test(text)) return parseShort(text)
  const iso = ISO.exec(text.toUpperCase())
  if (iso !== null && /\d[A-Z]$/.test(text.toUpperCase())) return parseIso(iso)
  const hint = /^\d{1,15}$/.test(text)
    ? `text needs a unit, such as "${text}ms" or "${text}s"`
    : 'write "15m", "1h30m", "2d", "PT1H30M" or a number of milliseconds'
  throw timeError('DURATION_SYNTAX', `duration ${quote(value)} is not understood: ${hint}`)
}

function parseShort(text: string): number {
  let total = 0
  for (const [, amount, unit] of text.matchAll(SHORT_PART)) total += Number(amount) * (UNITS[unit as string] as number)
  return total
}

function parseIso([, weeks, days, hours, minutes, seconds]: RegExpExecArray): number {
  return (
    Number(weeks ?? 0) * 7 * DAY_MS +
    Number(days ?? 0) * DAY_MS +
    Number(hours ?? 0) * HOUR_MS +
    Number(minutes ?? 0) * MINUTE_MS +
    Number(seconds ?? 0) * SECOND_MS
  )
}

const SHORT_UNITS = ['d', 'h', 'm', 's', 'ms'] as const

/** "1h30m": the shortest text that is parsed to the same duration. */
export function durationText(ms: number): string {
  let rest = ms
  let text = ''
  for (const unit of SHORT_UNITS) {
    const size = UNITS[unit] as number
    const amount = Math.floor(rest / size)
    rest -= amount * size
    if (amount > 0) text += `${amount}${unit}`
  }
  return text || '0s'
}

const WORDS = [
  ['week', 7 * DAY_MS],
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', SECOND_MS],
  ['millisecond', 1],
] as const

/** "1 hour 30 minutes" */
export function describeDuration(ms: number): string {
  const parts: string[] = []
  let rest = ms
  for (const [word, size] of WORDS) {
    if (word === 'week' && rest % size !== 0) continue
    const amount = Math.floor(rest / size)
    if (amount === 0) continue
    rest -= amount * size
    parts.push(`${amount} ${word}${amount === 1 ? '' : 's'}`)
  }
  return parts.join(' ') || '0 seconds'
}
