/** Refuses expressions that are well formed and can never fire, such as 30 February. */
import { daysFromCivil, daysInMonth, weekdayOf } from '../calendar.js'
import { quote, timeError } from '../error.js'
import { type CronFields, matchingDays } from './fields.js'

/**
 * Refuses an expression whose date exists in no year. Whether a date matches depends on whether the year is a leap year and
 * on which weekday it begins. There are 14 combinations, so checking 14 years covers all years.
 */
export function refuseNever(fields: CronFields, expression: string): void {
  const kinds = fields.years === undefined ? KINDS_OF_YEAR : kindsOf(fields.years)
  for (const year of kinds) {
    for (let month = 1; month <= 12; month += 1) {
      if ((fields.months & (1 << (month - 1))) === 0) continue
      const first = weekdayOf(daysFromCivil(year, month, 1))
      if (matchingDays(fields, daysInMonth(year, month), first) !== 0) return
    }
  }
  throw timeError(
    'EXPRESSION_NEVER_FIRES',
    `cron expression ${quote(expression)} can never fire: no month that it allows has such a day`,
  )
}

/** One year for each of the 14 kinds: common and leap, beginning on each weekday. */
const KINDS_OF_YEAR: readonly number[] = Array.from({ length: 28 }, (_, index) => 2001 + index).filter(
  (year, index, years) => years.findIndex((other) => kindOf(other) === kindOf(year)) === index,
)

function kindOf(year: number): number {
  return weekdayOf(daysFromCivil(year, 1, 1)) * 2 + (daysInMonth(year, 2) - 28)
}

function kindsOf(years: Int16Array): number[] {
  const found = new Map<number, number>()
  for (let at = 0; at < years.length && found.size < 14; at += 3) {
    const [from = 0, to = 0, step = 1] = years.subarray(at, at + 3)
    // The calendar repeats after 400 years, so more steps find no other kind of year.
    const last = Math.min(to, from + 400 * step)
    for (let year = from; year <= last && found.size < 14; year += step) found.set(kindOf(year), year)
  }
  return [...found.values()]
}
