/**
 * Finds matches of a cron expression in local time: seconds since 1970-01-01 00:00 on the wall clock, with no zone. All
 * searches are bounded: within a day by the masks, across days by months, across years by the end of the calendar.
 */
import { civilFromDays, daysFromCivil, daysInMonth, MAX_YEAR, MIN_YEAR, weekdayOf } from '../calendar.js'
import { bitCount, type CronFields, DayRule, highestBit, lowestBit, matchingDays } from './fields.js'

const DAY = 86_400
const ALL_MONTHS = 0xfff
const FIRST_DAY = daysFromCivil(MIN_YEAR, 1, 1)
const LAST_DAY = daysFromCivil(MAX_YEAR, 12, 31)

/** The first match at or after a local time. */
export function nextLocal(fields: CronFields, from: number): number | undefined {
  const startDay = Math.floor(from / DAY)
  const time = nextTime(fields, from - startDay * DAY)
  const day = nextDay(fields, time < 0 ? startDay + 1 : startDay)
  if (day === undefined) return undefined
  return day * DAY + (day === startDay ? time : firstTime(fields))
}

/** The last match at or before a local time. */
export function previousLocal(fields: CronFields, from: number): number | undefined {
  const startDay = Math.floor(from / DAY)
  const time = previousTime(fields, from - startDay * DAY)
  const day = previousDay(fields, time < 0 ? startDay - 1 : startDay)
  if (day === undefined) return undefined
  return day * DAY + (day === startDay ? time : lastTime(fields))
}

/** How many matches there are from one local time up to, not including, another. */
export function countLocal(fields: CronFields, from: number, to: number): number {
  if (to <= from) return 0
  const firstDay = Math.floor(from / DAY)
  const lastDay = Math.floor(to / DAY)
  const before = matchesDay(fields, firstDay) ? timesBefore(fields, from - firstDay * DAY) : 0
  const after = matchesDay(fields, lastDay) ? timesBefore(fields, to - lastDay * DAY) : 0
  return countDays(fields, firstDay, lastDay) * timesBefore(fields, DAY) - before + after
}

// ── Days ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function isEveryDay(fields: CronFields): boolean {
  return fields.days === DayRule.every && fields.months === ALL_MONTHS && fields.years === undefined
}

function nextDay(fields: CronFields, from: number): number | undefined {
  if (from > LAST_DAY) return undefined
  const start = Math.max(from, FIRST_DAY)
  if (isEveryDay(fields)) return start
  const date = civilFromDays(start)
  let year = date >> 9
  let month = (date >> 5) & 15
  let skip = (date & 31) - 1
  while (year <= MAX_YEAR) {
    if (!matchesYear(fields, year)) {
      year = yearAfter(fields, year)
      month = 1
      skip = 0
      continue
    }
    const months = fields.months & (-1 << (month - 1))
    if (months === 0) {
      year += 1
      month = 1
      skip = 0
      continue
    }
    const found = lowestBit(months) + 1
    if (found !== month) skip = 0
    month = found
    const days = daysOf(fields, year, month) & (-1 << skip)
    if (days !== 0) return daysFromCivil(year, month, 1) + lowestBit(days)
    skip = 0
    month += 1
  }
  return undefined
}

function previousDay(fields: CronFields, from: number): number | undefined {
  if (from < FIRST_DAY) return undefined
  const start = Math.min(from, LAST_DAY)
  if (isEveryDay(fields)) return start
  const date = civilFromDays(start)
  let year = date >> 9
  let month = (date >> 5) & 15
  let keep = date & 31
  while (year >= MIN_YEAR) {
    const months = matchesYear(fields, year) ? fields.months & ((1 << month) - 1) : 0
    if (months === 0) {
      year = matchesYear(fields, year - 1) ? year - 1 : yearBefore(fields, year)
      month = 12
      keep = 31
      continue
    }
    const found = highestBit(months) + 1
    if (found !== month) keep = 31
    month = found
    const days = daysOf(fields, year, month) & (-1 >>> (32 - keep))
    if (days !== 0) return daysFromCivil(year, month, 1) + highestBit(days)
    keep = 31
    month -= 1
  }
  return undefined
}

/** Matching days from one day number up to, not including, another. Whole years are counted by their kind. */
function countDays(fields: CronFields, from: number, to: number): number {
  if (isEveryDay(fields)) return to - from
  const firstYear = civilFromDays(from) >> 9
  const lastYear = civilFromDays(to) >> 9
  if (firstYear === lastYear) return countDaysByMonth(fields, from, to)
  const start = daysFromCivil(firstYear + 1, 1, 1)
  const end = daysFromCivil(lastYear, 1, 1)
  return countDaysByMonth(fields, from, start) + countYears(fields, start, end) + countDaysByMonth(fields, end, to)
}

/** Matching days from the first day of a year up to, not including, the first day of another. */
function countYears(fields: CronFields, from: number, to: number): number {
  // A year's days depend only on its length and on the weekday on which it begins: at most 14 kinds are counted.
  const known = new Map<number, number>()
  let count = 0
  for (let day = from; day < to; ) {
    const year = civilFromDays(day) >> 9
    const next = daysFromCivil(year + 1, 1, 1)
    if (matchesYear(fields, year)) {
      const kind = (next - day) * 7 + weekdayOf(day)
      const days = known.get(kind) ?? countDaysByMonth(fields, day, next)
      known.set(kind, days)
      count += days
    }
    day = next
  }
  return count
}

function countDaysByMonth(fields: CronFields, from: number, to: number): number {
  let count = 0
  let day = from
  while (day < to) {
    const date = civilFromDays(day)
    const year = date >> 9
    const month = (date >> 5) & 15
    const skip = (date & 31) - 1
    const length = daysInMonth(year, month)
    const until = Math.min(length, skip + (to - day))
    if (matchesYear(fields, year) && (fields.months & (1 << (month - 1))) !== 0) {
      count += bitCount(daysOf(fields, year, month) & (-1 << skip) & (-1 >>> (32 - until)))
    }
    day += until - skip
  }
  return count
}

function matchesDay(fields: CronFields, day: number): boolean {
  return countDaysByMonth(fields, day, day + 1) === 1
}

function daysOf(fields: CronFields, year: number, month: number): number {
  const first = daysFromCivil(year, month, 1)
  return matchingDays(fields, daysInMonth(year, month), weekdayOf(first))
}

function matchesYear({ years }: CronFields, year: number): boolean {
  if (years === undefined) return true
  for (let at = 0; at < years.length; at += 3) {
    const from = years[at] as number
    if (year >= from && year <= (years[at + 1] as number) && (year - from) % (years[at + 2] as number) === 0)
      return true
  }
  return false
}

/** The nearest matching year after `year`, or one past the calendar's end. */
function yearAfter({ years }: CronFields, year: number): number {
  if (years === undefined) return year + 1
  let nearest = MAX_YEAR + 1
  for (let at = 0; at < years.length; at += 3) {
    const from = years[at] as number
    const step = years[at + 2] as number
    const candidate = year < from ? from : from + (Math.floor((year - from) / step) + 1) * step
    if (candidate <= (years[at + 1] as number) && candidate < nearest) nearest = candidate
  }
  return nearest
}

/** The nearest matching year before `year`, or one before the calendar's start. */
function yearBefore({ years }: CronFields, year: number): number {
  if (years === undefined) return year - 1
  let nearest = MIN_YEAR - 1
  for (let at = 0; at < years.length; at += 3) {
    const from = years[at] as number
    if (year <= from) continue
    const step = years[at + 2] as number
    const last = Math.min(years[at + 1] as number, year - 1)
    nearest = Math.max(nearest, from + Math.floor((last - from) / step) * step)
  }
  return nearest
}

// ── Times of a day, in seconds ──────────────────────────────────────────────────────────────────────────────────────

function nextTime(fields: CronFields, from: number): number {
  const hour = Math.floor(from / 3_600)
  if ((fields.hours & (1 << hour)) !== 0) {
    const minute = Math.floor(from / 60) % 60
    if (hasBit(fields.minutesLow, fields.minutesHigh, minute)) {
      const second = nextBit(fields.secondsLow, fields.secondsHigh, from % 60)
      if (second >= 0) return hour * 3_600 + minute * 60 + second
    }
    const later = nextBit(fields.minutesLow, fields.minutesHigh, minute + 1)
    if (later >= 0) return hour * 3_600 + later * 60 + nextBit(fields.secondsLow, fields.secondsHigh, 0)
  }
  const hours = fields.hours & (-1 << (hour + 1))
  return hours === 0 ? -1 : lowestBit(hours) * 3_600 + firstOfHour(fields)
}

function previousTime(fields: CronFields, from: number): number {
  const hour = Math.floor(from / 3_600)
  if ((fields.hours & (1 << hour)) !== 0) {
    const minute = Math.floor(from / 60) % 60
    if (hasBit(fields.minutesLow, fields.minutesHigh, minute)) {
      const second = previousBit(fields.secondsLow, fields.secondsHigh, from % 60)
      if (second >= 0) return hour * 3_600 + minute * 60 + second
    }
    const earlier = previousBit(fields.minutesLow, fields.minutesHigh, minute - 1)
    if (earlier >= 0) return hour * 3_600 + earlier * 60 + previousBit(fields.secondsLow, fields.secondsHigh, 59)
  }
  const hours = fields.hours & ((1 << hour) - 1)
  return hours === 0 ? -1 : highestBit(hours) * 3_600 + lastOfHour(fields)
}

function firstTime(fields: CronFields): number {
  return lowestBit(fields.hours) * 3_600 + firstOfHour(fields)
}

function lastTime(fields: CronFields): number {
  return highestBit(fields.hours) * 3_600 + lastOfHour(fields)
}

function firstOfHour(fields: CronFields): number {
  return nextBit(fields.minutesLow, fields.minutesHigh, 0) * 60 + nextBit(fields.secondsLow, fields.secondsHigh, 0)
}

function lastOfHour(fields: CronFields): number {
  return (
    previousBit(fields.minutesLow, fields.minutesHigh, 59) * 60 + previousBit(fields.secondsLow, fields.secondsHigh, 59)
  )
}

/** How many matching times of a day lie before the given second. */
function timesBefore(fields: CronFields, second: number): number {
  const perMinute = bitCount(fields.secondsLow) + bitCount(fields.secondsHigh)
  const perHour = perMinute * (bitCount(fields.minutesLow) + bitCount(fields.minutesHigh))
  const hour = Math.floor(second / 3_600)
  let count = bitCount(fields.hours & ((1 << hour) - 1)) * perHour
  if ((fields.hours & (1 << hour)) === 0) return count
  const minute = Math.floor(second / 60) % 60
  count += bitsBelow(fields.minutesLow, fields.minutesHigh, minute) * perMinute
  if (!hasBit(fields.minutesLow, fields.minutesHigh, minute)) return count
  return count + bitsBelow(fields.secondsLow, fields.secondsHigh, second % 60)
}

// ── Sixty bits in two numbers ───────────────────────────────────────────────────────────────────────────────────────

function hasBit(low: number, high: number, at: number): boolean {
  return at < 32 ? (low & (1 << at)) !== 0 : (high & (1 << (at - 32))) !== 0
}

function nextBit(low: number, high: number, from: number): number {
  if (from < 32) {
    const rest = low & (-1 << from)
    if (rest !== 0) return lowestBit(rest)
    return high === 0 ? -1 : 32 + lowestBit(high)
  }
  const rest = from < 60 ? high & (-1 << (from - 32)) : 0
  return rest === 0 ? -1 : 32 + lowestBit(rest)
}

function previousBit(low: number, high: number, from: number): number {
  if (from >= 32) {
    const rest = high & (-1 >>> (63 - from))
    if (rest !== 0) return 32 + highestBit(rest)
    return low === 0 ? -1 : highestBit(low)
  }
  const rest = from >= 0 ? low & (-1 >>> (31 - from)) : 0
  return rest === 0 ? -1 : highestBit(rest)
}

function bitsBelow(low: number, high: number, at: number): number {
  if (at < 32) return bitCount(low & ((1 << at) - 1))
  return bitCount(low) + (at === 32 ? 0 : bitCount(high & (-1 >>> (64 - at))))
}
