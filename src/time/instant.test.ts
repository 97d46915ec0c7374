import { describe, expect, it } from 'vitest'
import { instantMs } from './index.js'
import { zone } from './zone.js'

const nine = Date.parse('2026-03-01T09:00:00Z')

describe('an instant', () => {
  it.each([
    ['2026-03-01T09:00:00Z', nine],
    ['2026-03-01T09:00Z', nine],
    ['2026-03-01t09:00:00z', nine],
    ['2026-03-01 09:00:00Z', nine],
    ['2026-03-01T10:00:00+01:00', nine],
    ['2026-03-01T04:30:00-0430', nine],
    ['2026-03-01Z', nine - 9 * 3_600_000],
    ['2026-03-01T09:00:00.5Z', nine + 500],
    ['2026-03-01T09:00:00.123456789Z', nine + 123],
    ['2026-03-01T09:00:00.019Z', nine + 19],
    [String(nine / 1_000), nine],
    ['-1', -1_000],
    ['1.5', 1_500],
    [nine, nine],
    [nine + 0.4, nine],
    [Date.UTC(1980, 0, 1), Date.UTC(1980, 0, 1)],
    [-Date.UTC(1990, 0, 1), -Date.UTC(1990, 0, 1)],
  ])('is read from %j', (value, ms) => {
    expect(instantMs(value)).toBe(ms)
  })

  it('is a Date', () => {
    expect(instantMs(new Date(nine))).toBe(nine)
    expect(() => instantMs(new Date(Number.NaN))).toThrowError(
      expect.objectContaining({ code: 'INSTANT_OUT_OF_RANGE' }),
    )
  })

  it('without an offset is a local time of the zone, and refused without a zone', () => {
    const berlin = zone('Europe/Berlin')
    expect(instantMs('2026-03-01T10:00:00', berlin)).toBe(nine)
    expect(instantMs('2026-03-29T02:30', berlin)).toBe(Date.parse('2026-03-29T01:00:00Z'))
    expect(instantMs('2026-10-25T02:30', berlin)).toBe(Date.parse('2026-10-25T00:30:00Z'))
    expect(() => instantMs('2026-03-01T10:00:00')).toThrowError(
      expect.objectContaining({
        code: 'INSTANT_SYNTAX',
        message: 'instant "2026-03-01T10:00:00" has no offset: end it with "Z" or "+02:00", or give a timezone',
      }),
    )
  })

  it.each([
    '',
    'tomorrow',
    '2026-3-1',
    '2026-03-01T9:00Z',
    '20260301T090000Z',
    '2026-03-01T09:00:00+1',
    '0x10',
    'x'.repeat(100),
  ])('%j is not understood', (text) => {
    expect(() => instantMs(text)).toThrowError(expect.objectContaining({ code: 'INSTANT_SYNTAX' }))
  })

  it.each([null, undefined, {}, [], true, Object.create(null)])('%j is not an instant', (value) => {
    expect(() => instantMs(value as never)).toThrowError(expect.objectContaining({ code: 'INSTANT_SYNTAX' }))
  })

  it.each([
    '2026-02-29T00:00:00Z',
    '2026-13-01Z',
    '2026-00-01Z',
    '2026-01-01T24:00Z',
    '2026-01-01T00:60Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00Z'.replace('Z', '+24:00'),
    '0000-12-31T00:00:00Z',
    '9999-12-31T23:59:59-01:00',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e15,
  ])('%j is out of range', (value) => {
    expect(() => instantMs(value)).toThrowError(expect.objectContaining({ code: 'INSTANT_OUT_OF_RANGE' }))
  })

  it('as a number of seconds is refused with the milliseconds that were probably meant', () => {
    expect(() => instantMs(nine / 1_000)).toThrowError(
      `instant "1772355600" looks like seconds: numbers are epoch milliseconds (1772355600000), and instants before 1980 are written as ISO 8601 text`,
    )
    expect(() => instantMs(0)).toThrowError(expect.objectContaining({ code: 'INSTANT_OUT_OF_RANGE' }))
  })

  it('as text of milliseconds is refused', () => {
    expect(() => instantMs(String(nine))).toThrowError(
      `instant "${nine}" looks like milliseconds: text is unix seconds; pass milliseconds as a number, or write ISO 8601 text`,
    )
  })
})
