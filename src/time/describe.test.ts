import { expect, it, test } from 'vitest'
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
  ['0 0 1 * MON', 'At 00:00, on day 1 of the month, and on Monday'],
  ['0 0 13 * +FRI', 'At 00:00, on day 13 of the month, only when it is Friday'],
  ['0 0 * jul,mar *', 'At 00:00, only in July and March'],
  ['0 0 *,1 * MON', 'At 00:00, only on Monday'],
  ['0 0 0 1 1 ? 2030-2035', 'At 00:00, on day 1 of the month, only in January, 2030 through 2035'],
  ['0 22-2 * * FRI-MON', 'Every hour, between 22:00 and 02:00, Friday through Monday'],
  // An expression without a plain description is quoted.
  ['0 0 1,15W * *', 'At the times of "0 0 1,15W * *"'],
  ['0 0 * * mon#2,fri', 'At the times of "0 0 * * MON#2,FRI"'],
])('%s reads "%s"', (cron, words) => {
  expect(timeline(cron).describe()).toBe(`${words}, UTC`)
})

test('the zone is named, in its given spelling', () => {
  expect(timeline({ cron: '0 9 * * *', timezone: 'europe/berlin' }).describe()).toBe('At 09:00, Europe/Berlin time')
})
