/**
 * A parsed cron expression: bit masks, without the text.
 *
 *     0 9 * * 1-5   →   minutes 1 << 0, hours 1 << 9, weekdays 0b0111110
 */
export interface CronFields {
  /** The seconds and minutes of an hour: bits 0–31 in `Low`, 32–59 in `High`. */
  readonly secondsLow: number
  readonly secondsHigh: number
  readonly minutesLow: number
  readonly minutesHigh: number
  /** Bit n for hour n. */
  readonly hours: number
  /** Bit n − 1 for day n. */
  readonly monthDays: number
  /** Bit n for the nth day before the last of the month; bit 0 is `L`. */
  readonly daysFromLast: number
  /** Bit n − 1 for `nW`: the weekday (Monday to Friday) nearest to day n. */
  readonly nearestWeekdays: number
  /** `LW`: the last weekday of the month. */
  readonly lastWeekday: boolean
  /** Bit n − 1 for month n. */
  readonly months: number
  /** Bit n for weekday n, 0 = Sunday. */
  readonly weekdays: number
  /** Bit 7(N − 1) + D for `D#N`, the Nth weekday D of the month, N from 1 to 4. */
  readonly nthWeekdays: number
  /** Bit D for `D#5`; bit 7 + D for `D#L`, the last weekday D of the month. */
  readonly lateWeekdays: number
  /** How day-of-month and day-of-week are combined. */
  readonly days: DayRule
  /** Triples of first year, last year and step; absent for every year. */
  readonly years: Int16Array | undefined
  /** Whether the minute or hour field begins with `*`: the expression then follows real time over clock changes. */
  readonly wildcard: boolean
}

export const DayRule = { every: 0, either: 1, both: 2 } as const
export type DayRule = (typeof DayRule)[keyof typeof DayRule]

/** Index of the lowest set bit; the mask must not be 0. */
export function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask)
}

/** Index of the highest set bit; the mask must not be 0. */
export function highestBit(mask: number): number {
  return 31 - Math.clz32(mask)
}

export function bitCount(mask: number): number {
  const pairs = mask - ((mask >>> 1) & 0x55555555)
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** Bits 0, 7, 14, 21 and 28: the days that have the same weekday as the first of the month. */
const WEEKLY = 0x10204081

/**
 * The days of a month that the expression matches (bit n − 1 for day n). `length` is the month's length, `firstWeekday`
 * the weekday of its first day.
 */
export function matchingDays(fields: CronFields, length: number, firstWeekday: number): number {
  const all = -1 >>> (32 - length)
  if (fields.days === DayRule.every) return all
  const byMonth = matchingMonthDays(fields, length, firstWeekday)
  const byWeek = matchingWeekdays(fields, length, firstWeekday)
  return (fields.days === DayRule.either ? byMonth | byWeek : byMonth & byWeek) & all
}

function matchingMonthDays(fields: CronFields, length: number, firstWeekday: number): number {
  let mask = fields.monthDays
  for (let rest = fields.daysFromLast; rest !== 0; rest &= rest - 1) {
    const day = length - lowestBit(rest)
    if (day >= 1) mask |= 1 << (day - 1)
  }
  for (let rest = fields.nearestWeekdays; rest !== 0; rest &= rest - 1) {
    const day = lowestBit(rest) + 1
    if (day <= length) mask |= 1 << (nearestWeekday(day, length, firstWeekday) - 1)
  }
  if (fields.lastWeekday) mask |= 1 << (nearestWeekday(length, length, firstWeekday) - 1)
  return mask
}

/** The day from Monday to Friday that is nearest to a day, always in the same month. */
function nearestWeekday(day: number, length: number, firstWeekday: number): number {
  const weekday = (firstWeekday + day - 1) % 7
  if (weekday === 6) return day > 1 ? day - 1 : day + 2
  if (weekday === 0) return day < length ? day + 1 : day - 2
  return day
}

function matchingWeekdays(fields: CronFields, length: number, firstWeekday: number): number {
  let mask = 0
  for (let rest = fields.weekdays; rest !== 0; rest &= rest - 1) {
    mask |= WEEKLY << firstOf(lowestBit(rest), firstWeekday)
  }
  for (let rest = fields.nthWeekdays; rest !== 0; rest &= rest - 1) {
    const bit = lowestBit(rest)
    mask |= 1 << (firstOf(bit % 7, firstWeekday) + 7 * Math.floor(bit / 7))
  }
  for (let rest = fields.lateWeekdays; rest !== 0; rest &= rest - 1) {
    const bit = lowestBit(rest)
    const fifth = firstOf(bit % 7, firstWeekday) + 28
    if (fifth < length) mask |= 1 << fifth
    else if (bit >= 7) mask |= 1 << (fifth - 7)
  }
  return mask
}

/** The number of days from the first of the month to the first day with the given weekday. */
function firstOf(weekday: number, firstWeekday: number): number {
  return (weekday - firstWeekday + 7) % 7
}
