import { describe, expect, it } from 'vitest'
import { relative, wallClock } from './human-time.js'

const NOW = Date.parse('2026-11-15T14:30:00Z')

describe('the distance of an instant from now', () => {
  it.each([
    ['2026-11-15T14:30:00.400Z', 'now'],
    ['2026-11-15T14:30:45Z', 'in 45 s'],
    ['2026-11-15T14:32:30Z', 'in 2 min 30 s'],
    ['2026-11-15T14:45:20Z', 'in 15 min'],
    ['2026-11-15T15:30:00Z', 'in 1 h'],
    ['2026-11-15T16:00:00Z', 'in 1 h 30 min'],
    ['2026-11-16T09:00:00Z', 'tomorrow, in 18 h 30 min'],
    ['2026-11-16T14:30:00Z', 'in 1 day'],
    ['2026-11-18T18:30:00Z', 'in 3 days 4 h'],
    ['2026-11-30T09:00:00Z', 'in 14 days'],
    ['2027-03-01T00:00:00Z', 'in 3 months'],
    ['2028-01-16T00:00:00Z', 'in 1 year 2 months'],
    ['2026-11-15T11:30:00Z', '3 h ago'],
    ['2026-11-14T23:00:00Z', 'yesterday, 15 h 30 min ago'],
    ['2020-11-15T00:00:00Z', '6 years ago'],
  ])('%s is printed as %s', (instant, words) => {
    expect(relative(Date.parse(instant), NOW, 'UTC')).toBe(words)
  })

  it('uses the days of the zone', () => {
    const instant = Date.parse('2026-11-15T23:30:00Z')
    expect(relative(instant, NOW, 'UTC')).toBe('in 9 h')
    expect(relative(instant, NOW, 'Europe/Berlin')).toBe('tomorrow, in 9 h')
  })
})

it('a wall clock is sortable, with its weekday and offset', () => {
  expect(wallClock(NOW, 'Europe/Berlin')).toBe('Sun 2026-11-15 15:30:00 +01:00')
  expect(wallClock(NOW, 'UTC')).toBe('Sun 2026-11-15 14:30:00 +00:00')
})
