import { describe, expect, it, test } from 'vitest'
import { describeDuration, durationMs } from './index.js'

describe('a duration', () => {
  it.each([
    ['500ms', 500],
    ['45s', 45_000],
    ['15m', 900_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
    ['1w', 604_800_000],
    ['1d12h', 129_600_000],
    [' 15m ', 900_000],
    ['0s', 0],
    ['PT1H30M', 5_400_000],
    ['pt90s', 90_000],
    ['PT0.5S', 500],
    ['P1D', 86_400_000],
    ['P1DT12H', 129_600_000],
    ['P2W', 1_209_600_000],
    [1_500, 1_500],
    [0.6, 1],
  ])('%j is %i ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms)
  })

  it.each([
    '',
    ' ',
    '15',
    'm',
    '15 m',
    '1h 30m',
    '-5m',
    '+5m',
    '1e3s',
    '5M',
    'P',
    'PT',
    'P1DT',
    'P1H',
    '1h30',
    'ten minutes',
    '9'.repeat(70),
  ])('%j is not understood', (text) => {
    expect(() => durationMs(text)).toThrowError(expect.objectContaining({ code: 'DURATION_SYNTAX' }))
  })

  it.each(['1mo', '2 years'.replace(' ', ''), '1y', '3months', 'P1M', 'P1Y', 'P1Y2M', 'P1Y2M3DT4H', 'P2W1M'])(
    '%j is refused, with a hint to use cron',
    (text) => {
      expect(() => durationMs(text)).toThrowError(
        expect.objectContaining({
          code: 'DURATION_CALENDAR_UNIT',
          message: `duration "${text}": months and years differ in length; use days ("30d") or a cron expression ("@monthly")`,
        }),
      )
    },
  )

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '36526d', 'P99999999D'])('%j is out of range', (value) => {
    expect(() => durationMs(value)).toThrowError(
      expect.objectContaining({
        code: 'DURATION_OUT_OF_RANGE',
        message: `duration "${value}" is out of range: from 0 to 36525 days`,
      }),
    )
  })

  it.each([null, undefined, {}, [], true])('%j is not a duration', (value) => {
    expect(() => durationMs(value as never)).toThrowError(expect.objectContaining({ code: 'DURATION_SYNTAX' }))
  })
})

test('durations are described in words', () => {
  const words = [0, 1, 1_000, 5_400_000, 86_400_000, 604_800_000, 8 * 86_400_000, 3_600_500].map(describeDuration)
  expect(words).toEqual([
    '0 seconds',
    '1 millisecond',
    '1 second',
    '1 hour 30 minutes',
    '1 day',
    '1 week',
    '8 days',
    '1 hour 500 milliseconds',
  ])
})
