/** The two day fields in words, and how they are combined. */
import { type CronFields, DayRule } from './cron/fields.js'
import { listWords, NO_WORDS, type Run, runsOf } from './list-words.js'

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const NTH = ['first', 'second', 'third', 'fourth', 'fifth', 'last']
const ALL_MONTH_DAYS = 0x7fffffff
const ALL_WEEKDAYS = 0x7f

/**
 * "on day 13 of the month or on Friday" for `0 0 13 * FRI`; "on day 13 of the month, only when it is Friday" with `+FRI`.
 * No words when every day matches.
 */
export function dayWords(fields: CronFields): string {
  const allOfMonth = (fields.monthDays & ALL_MONTH_DAYS) === ALL_MONTH_DAYS
  const allOfWeek = fields.weekdays === ALL_WEEKDAYS
  if (fields.days === DayRule.every || (allOfMonth && allOfWeek)) return NO_WORDS
  if (fields.days === DayRule.either) {
    if (allOfMonth || allOfWeek) return NO_WORDS
    return [...monthDayWords(fields), ...weekdayWords(fields, 'on ')].join(' or ')
  }
  if (allOfMonth) return onlyWeekdays(fields)
  const days = monthDayWords(fields).join(' or ')
  return allOfWeek ? days : `${days}, only when it is ${weekdayWords(fields, '', 'or').join(' or ')}`
}

/** A range of weekdays, which needs no "only", or a list. */
function onlyWeekdays(fields: CronFields): string {
  const words = weekdayWords(fields, 'on ')
  const runs = runsOf(fields.weekdays, 7, true)
  if (words.length > 1 || fields.weekdays === 0) return words.join(' or ')
  return runs.length === 1 && runs.every(({ from, to }) => to - from > 1)
    ? (words[0] ?? '').replace(/^on /, '')
    : `only ${words[0]}`
}

/** Each of these is a day on its own: any one of them is enough. */
function monthDayWords({ monthDays, daysFromLast, nearestWeekdays, lastWeekday }: CronFields): string[] {
  const words: string[] = []
  const runs = runsOf(monthDays, 31, false)
  if (runs.length > 0) words.push(`on ${numberedDays(runs)} of the month`)
  if (daysFromLast & 1) words.push('on the last day of the month')
  for (const before of bitsOf(daysFromLast >>> 1)) {
    words.push(`${before + 1} day${before === 0 ? '' : 's'} before the last day of the month`)
  }
  for (const day of bitsOf(nearestWeekdays)) words.push(`on the weekday nearest day ${day + 1} of the month`)
  if (lastWeekday) words.push('on the last weekday of the month')
  return words
}

/** "day 5", "days 1, 3 and 10 through 12", or "every 2nd day from day 1 through day 31". */
function numberedDays(runs: readonly Run[]): string {
  const [first, second] = runs
  if (first === undefined) return NO_WORDS
  const step = (second?.from ?? 0) - first.from
  const isStepped = runs.length > 3 && runs.every(({ from, to }, at) => from === to && from === first.from + at * step)
  if (isStepped)
    return `every ${ordinal(step)} day from day ${first.from + 1} through day ${(runs.at(-1)?.to ?? 0) + 1}`
  const isOne = runs.length === 1 && first.from === first.to
  return `${isOne ? 'day' : 'days'} ${listWords(runs, (day) => String(day + 1))}`
}

function weekdayWords({ weekdays, nthWeekdays, lateWeekdays }: CronFields, on: string, and = 'and'): string[] {
  const words: string[] = []
  if (weekdays !== 0) {
    words.push(`${on}${listWords(runsOf(weekdays, 7, true), (day) => WEEKDAYS[day % 7] ?? '', and)}`)
  }
  for (const bit of bitsOf(nthWeekdays)) words.push(nthWords(on, Math.floor(bit / 7), bit % 7))
  for (const bit of bitsOf(lateWeekdays)) words.push(nthWords(on, 4 + Math.floor(bit / 7), bit % 7))
  return words
}

function nthWords(on: string, nth: number, weekday: number): string {
  return `${on}the ${NTH[nth]} ${WEEKDAYS[weekday]} of the month`
}

function bitsOf(mask: number): number[] {
  return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => ((mask >>> bit) & 1) === 1)
}

function ordinal(count: number): string {
  const ending = { 1: 'st', 2: 'nd', 3: 'rd' }[count % 10 > 3 || (count > 10 && count < 14) ? 0 : count % 10]
  return `${count}${ending ?? 'th'}`
}
