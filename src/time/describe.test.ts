import { describe, expect, it, test } from 'vitest'
import { seededRandom } from '../testing/random.js'
import { daysFromCivil, daysInMonth, weekdayOf } from './calendar.js'
import { type CronFields, matchingDays } from './cron/fields.js'
import { parseCron } from './cron/parse.js'
import { timeline } from './index.js'

it.each([
  ['0 9 * * 1-5', 'At 09:00, Monday through Friday'],
  ['*/15 * * * *', 'Every 15 minutes'],
  ['*/10 * * * * *', 'Every 10 seconds'],
  ['@daily', 'At 00:00'],
  ['@hourly', 'Every hour'],
  ['0 0 L * *', 'At 00:00, on the last day of the month'],
  ['0 0 L-3 * *', 'At 00:00, 3 days before the last day of the month'],
  ['0 0 LW * *', 'At 00:00, on the last weekday of the month'],
  ['0 0 15w * *', 'At 00:00, on the weekday nearest day 15 of the month'],
  ['0 0 * * FRI#2', 'At 00:00, on the second Friday of the month'],
  ['0 0 * * FRI#L', 'At 00:00, on the last Friday of the month'],
  ['0 0 * * 5L', 'At 00:00, on the last Friday of the month'],
  ['0 0 1 * MON', 'At 00:00, on day 1 of the month or on Monday'],
  ['0 0 13 * +FRI', 'At 00:00, on day 13 of the month, only when it is Friday'],
  ['0 0 * jul,mar *', 'At 00:00, only in March and July'],
  ['0 0 *,1 * MON', 'At 00:00, only on Monday'],
  ['0 0 0 1 1 ? 2030-2035', 'At 00:00, on day 1 of the month, only in January, 2030 through 2035'],
  ['0 22-2 * * FRI-MON', 'Every hour, between 22:00 and 02:00, Friday through Monday'],
  ['0 0 1,15W * *', 'At 00:00, on day 1 of the month or on the weekday nearest day 15 of the month'],
  ['0 0 * * mon#2,fri', 'At 00:00, on Friday or on the second Monday of the month'],
  ['0 0 13 * MON-FRI', 'At 00:00, on day 13 of the month or on Monday through Friday'],
  ['0 0 13 * +MON-FRI', 'At 00:00, on day 13 of the month, only when it is Monday through Friday'],
  ['0 0 1-7 * +MON,FRI', 'At 00:00, on days 1 through 7 of the month, only when it is Monday or Friday'],
  ['0 0 */2 * *', 'At 00:00, on every 2nd day from day 1 through day 31 of the month'],
  ['0 0 1,2,15 * *', 'At 00:00, on days 1, 2 and 15 of the month'],
  // A day field that lists every day makes the other one meaningless, because either is enough.
  ['0 0 */1 * MON', 'At 00:00'],
  ['0 0 13 * 0-7', 'At 00:00'],
  ['0 0 * * SUN-SUN', 'At 00:00, only on Sunday'],
  ['0 0 * * 0-7', 'At 00:00'],
  ['0 0 * NOV-FEB *', 'At 00:00, November through February'],
  ['0 0 0 1 1 ? */4', 'At 00:00, on day 1 of the month, only in January, years divisible by 4'],
])('%s reads "%s"', (cron, words) => {
  expect(timeline(cron).describe()).toBe(`${words}, UTC`)
})

test('the zone is named, in its given spelling', () => {
  expect(timeline({ cron: '0 9 * * *', timezone: 'europe/berlin' }).describe()).toBe('At 09:00, Europe/Berlin time')
})

describe('descriptions', () => {
  const random = seededRandom(20_261_119)
  const below = (count: number) => random.integer(0, count - 1)
  const pick = (choices: readonly string[]) => choices[below(choices.length)] ?? ''
  /** A list of one or two entries, each a value, a range, a step or one of the field's own forms. */
  const field = (values: readonly string[], own: readonly string[]) => {
    const entry = () =>
      pick([pick(values), `${pick(values)}-${pick(values)}`, `*/${1 + below(values.length)}`, '*', ...own])
    return below(3) === 0 ? `${entry()},${entry()}` : entry()
  }
  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => String(from + at))
  const expression = () =>
    [
      pick(['0', '5', '*', '*/15', '5-50/15', '0,30']),
      pick(['0', '9', '*', '9-17', '22-2', '*/2', '9,*/6']),
      field(numbers(1, 31), ['L', 'L-1', 'L-2', 'LW', '1W', '15W', '1-31']),
      field(numbers(1, 12), []),
      `${pick(['', '', '+'])}${field(numbers(0, 7), ['MON-FRI', 'FRI#1', 'FRI#5', 'FRI#L', '1L', 'SUN-SUN', '0-7'])}`,
    ].join(' ')

  it('of expressions with different ticks over four years are different', () => {
    const seen = new Map<string, { readonly ticks: string; readonly expression: string }>()
    let parsed = 0
    for (let count = 0; count < 8_000; count += 1) {
      const text = expression()
      const ticks = fingerprint(text)
      if (ticks === undefined) continue
      parsed += 1
      const words = timeline(text).describe()
      const other = seen.get(words)
      if (other !== undefined && other.ticks !== ticks) expect(`${text} and ${other.expression}`).toBe(words)
      seen.set(words, { ticks, expression: text })
    }
    expect(parsed).toBeGreaterThan(5_000)
  })
})

/** What decides the ticks of 2025 to 2028: the days that match, and the times of day. */
function fingerprint(expression: string): string | undefined {
  let fields: CronFields
  try {
    fields = parseCron(expression)
  } catch {
    return undefined
  }
  const days: number[] = []
  for (let month = 0; month < 48; month += 1) {
    const [year, ofYear] = [2025 + Math.floor(month / 12), (month % 12) + 1]
    const isAllowed = (fields.months >> (ofYear - 1)) & 1
    const first = weekdayOf(daysFromCivil(year, ofYear, 1))
    days.push(isAllowed ? matchingDays(fields, daysInMonth(year, ofYear), first) : 0)
  }
  const { secondsLow, secondsHigh, minutesLow, minutesHigh, hours } = fields
  return [secondsLow, secondsHigh, minutesLow, minutesHigh, hours, ...days].join()
}
