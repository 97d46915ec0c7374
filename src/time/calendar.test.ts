import { expect, test } from 'vitest'
import { civilFromDays, daysFromCivil, daysInMonth, MAX_INSTANT, MIN_INSTANT, weekdayOf } from './calendar.js'

test('every day of the years 1 to 9999 has the same date and weekday as in Date', () => {
  const last = Math.floor(MAX_INSTANT / 86_400_000)
  // Steps of 97 days visit days of all kinds, because 97 is no multiple of a week, a month or a year.
  for (let day = MIN_INSTANT / 86_400_000; day <= last; day += 97) {
    const date = new Date(day * 86_400_000)
    const packed = civilFromDays(day)
    const [year, month, dayOfMonth] = [packed >> 9, (packed >> 5) & 15, packed & 31]
    expect([year, month, dayOfMonth]).toEqual([date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()])
    expect(daysFromCivil(year, month, dayOfMonth)).toBe(day)
    expect(weekdayOf(day)).toBe(date.getUTCDay())
  }
})

test('February has 29 days in leap years, and most century years are not leap years', () => {
  expect([2024, 2023, 1900, 2000, 2100].map((year) => daysInMonth(year, 2))).toEqual([29, 28, 28, 29, 28])
})
