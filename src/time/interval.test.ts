import { describe, expect, it, test } from 'vitest'
import { MAX_INSTANT } from './calendar.js'
import { timeline } from './index.js'

const created = Date.parse('2026-03-01T09:07:13.250Z')

describe('@every', () => {
  it('fires first one interval after its anchor', () => {
    const line = timeline('@every 15m', created)
    expect(line.next(created)).toBe(created + 900_000)
    expect(line.next(0)).toBe(created + 900_000)
    expect(line.next(Number.NEGATIVE_INFINITY)).toBe(created + 900_000)
    expect(line.previous(created + 900_000)).toBeUndefined()
  })

  it('never drifts: each tick is counted from the anchor', () => {
    const line = timeline('@every 1h30m', created)
    let tick = line.next(created)
    for (let number = 1; number <= 10_000; number += 1) {
      expect(tick).toBe(created + number * 5_400_000)
      // The next search begins at a later, uneven instant.
      tick = line.next((tick ?? 0) + 1_234.5)
    }
  })

  it('reads ISO durations and the every option alike', () => {
    for (const spec of ['@every PT90M', '@every\t1h30m', ' @every  90m ', { every: '90m' }, { every: 5_400_000 }]) {
      expect(timeline(spec, created).next(created)).toBe(created + 5_400_000)
    }
  })

  it('finds the tick before an instant', () => {
    const line = timeline('@every 10s', 0)
    expect(line.previous(10_000)).toBeUndefined()
    expect(line.previous(10_001)).toBe(10_000)
    expect(line.previous(20_000)).toBe(10_000)
    expect(line.previous(Number.POSITIVE_INFINITY)).toBe(MAX_INSTANT - (MAX_INSTANT % 10_000))
  })

  it('lists and counts its ticks', () => {
    const line = timeline('@every 10s', 0)
    expect(line.between(10_000, 40_000, 9)).toEqual([20_000, 30_000, 40_000])
    expect(line.between(10_000, 40_000, 2)).toEqual([20_000, 30_000])
    expect(line.between(0, Number.POSITIVE_INFINITY, 1)).toEqual([10_000])
    expect(line.count(10_000, 40_000)).toBe(3)
    expect(line.count(-1e9, 40_000)).toBe(4)
    expect(line.count(40_000, 10_000)).toBe(0)
    expect(timeline('@every 1s', 0).count(0, 365 * 86_400_000)).toBe(365 * 86_400)
  })

  it('ends with the calendar', () => {
    const line = timeline('@every 1d', 0)
    const last = line.previous(Number.POSITIVE_INFINITY) ?? 0
    expect(line.next(last)).toBeUndefined()
    expect(line.between(last - 1, Number.POSITIVE_INFINITY, 10)).toEqual([last])
    expect(line.count(last - 1, Number.POSITIVE_INFINITY)).toBe(1)
  })

  it('has whole milliseconds even if its anchor has not', () => {
    expect(timeline('@every 1s', 0.75).next(0)).toBe(1_000)
  })
})

describe('a bad interval', () => {
  it.each([
    ['@every 0s', 'INTERVAL_TOO_SHORT', 'interval "0s" is too short: at least one second'],
    ['@every 999ms', 'INTERVAL_TOO_SHORT', 'interval "999ms" is too short: at least one second'],
    ['@every -1s', 'DURATION_SYNTAX', undefined],
    ['@every', 'DURATION_SYNTAX', undefined],
    ['@every soon', 'DURATION_SYNTAX', undefined],
    ['@every 1mo', 'DURATION_CALENDAR_UNIT', undefined],
    ['@every P1Y', 'DURATION_CALENDAR_UNIT', undefined],
    [{ every: -5 }, 'DURATION_OUT_OF_RANGE', 'duration "-5" is out of range: from 0 to 36525 days'],
    [{ every: 0 }, 'INTERVAL_TOO_SHORT', undefined],
    [
      { cron: '@every 1h', timezone: 'Europe/Berlin' },
      'TIMELINE_INVALID',
      'timezone does not apply to @every: an interval is the same in every zone',
    ],
    [{ cron: '@every 1h', dst: {} }, 'DST_INVALID', 'dst does not apply to @every: remove it'],
    [`@every ${'1h'.repeat(200)}`, 'EXPRESSION_TOO_LONG', undefined],
  ])('%j is refused', (spec, code, message) => {
    expect(() => timeline(spec)).toThrowError(
      expect.objectContaining({ code, ...(message === undefined ? {} : { message }) }),
    )
  })

  test('an anchor outside of the calendar is refused', () => {
    for (const anchor of [Number.NaN, Number.POSITIVE_INFINITY, 1e18, '5' as never]) {
      expect(() => timeline('@every 1h', anchor)).toThrowError(
        expect.objectContaining({ code: 'INSTANT_OUT_OF_RANGE' }),
      )
    }
  })
})

test('an interval is described in words', () => {
  const words = ['1h', '15m', '90m', '1d', '2w'].map((every) => timeline({ every }).describe())
  expect(words).toEqual(['Every hour', 'Every 15 minutes', 'Every 1 hour 30 minutes', 'Every day', 'Every 2 weeks'])
})
