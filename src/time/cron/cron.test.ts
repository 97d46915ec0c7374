import { describe, expect, it, test } from 'vitest'
import { MAX_INSTANT, MIN_INSTANT } from '../calendar.js'
import { type DstRule, timeline } from '../index.js'

const at = (iso: string) => Date.parse(iso)
const iso = (tick: number | undefined) => (tick === undefined ? undefined : new Date(tick).toISOString().slice(0, 19))

/** The ticks between two instants, as UTC text without the Z. */
function ticks(cron: string, timezone: string, from: string, to: string, dst?: DstRule): (string | undefined)[] {
  const line = timeline({ cron, timezone, ...(dst === undefined ? {} : { dst }) })
  return line.between(at(from) - 1, at(to), 1_000).map(iso)
}

describe('where the clock is turned forward (Berlin, 29 March 2026, 02:00 to 03:00)', () => {
  const spring = (cron: string, dst?: DstRule) =>
    ticks(cron, 'Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29T03:00:00Z', dst)

  it('fires a skipped time at the first instant after the gap', () => {
    expect(spring('30 2 * * *')).toEqual(['2026-03-29T01:00:00'])
    expect(spring('30 2 * * *', { gap: 'shift' })).toEqual(['2026-03-29T01:00:00'])
  })

  it('drops a skipped time under gap: skip', () => {
    expect(spring('30 2 * * *', { gap: 'skip' })).toEqual([])
  })

  it('fires several skipped times once', () => {
    expect(spring('0,15,30,45 2 * * *')).toEqual(['2026-03-29T01:00:00'])
    expect(spring('30 59 2 * * *')).toEqual(['2026-03-29T01:00:00'])
  })

  it('merges them with a regular tick at that instant', () => {
    expect(spring('0,30 2-3 * * *')).toEqual(['2026-03-29T01:00:00', '2026-03-29T01:30:00'])
    expect(
      timeline({ cron: '0,30 2-3 * * *', timezone: 'Europe/Berlin' }).count(
        at('2026-03-28T23:00:00Z'),
        at('2026-03-29T03:00:00Z'),
      ),
    ).toBe(2)
  })

  it('follows real time when the minute or the hour begins with *', () => {
    expect(spring('30 * * * *').slice(0, 3)).toEqual([
      '2026-03-28T23:30:00',
      '2026-03-29T00:30:00',
      '2026-03-29T01:30:00',
    ])
    expect(spring('*/15 2 * * *')).toEqual([])
    expect(spring('15 */2 * * *')).toEqual(['2026-03-28T23:15:00', '2026-03-29T02:15:00'])
  })

  it('treats a wildcard as a fixed time once dst is set', () => {
    expect(spring('*/15 2 * * *', {})).toEqual(['2026-03-29T01:00:00'])
    expect(spring('15 */2 * * *', { repeat: 'both' })).toEqual([
      '2026-03-28T23:15:00',
      '2026-03-29T01:00:00',
      '2026-03-29T02:15:00',
    ])
    expect(spring('15 */2 * * *', { gap: 'skip' })).toEqual(['2026-03-28T23:15:00', '2026-03-29T02:15:00'])
  })

  it('does not treat a wildcard second as a wildcard', () => {
    expect(spring('* 30 2 * * *')).toEqual(['2026-03-29T01:00:00'])
  })

  it('shifts only on days that match', () => {
    expect(spring('30 2 * * SAT')).toEqual([])
    expect(spring('30 2 29 3 *')).toEqual(['2026-03-29T01:00:00'])
  })
})

describe('where the clock is turned back (Berlin, 25 October 2026, 03:00 to 02:00)', () => {
  const autumn = (cron: string, dst?: DstRule) =>
    ticks(cron, 'Europe/Berlin', '2026-10-24T23:30:00Z', '2026-10-25T02:00:00Z', dst)

  it('fires a repeated time at its first occurrence', () => {
    expect(autumn('30 2 * * *')).toEqual(['2026-10-25T00:30:00'])
    expect(autumn('0,30 2-3 * * *')).toEqual(['2026-10-25T00:00:00', '2026-10-25T00:30:00', '2026-10-25T02:00:00'])
  })

  it('fires a repeated time at both occurrences under repeat: both', () => {
    expect(autumn('30 2 * * *', { repeat: 'both' })).toEqual(['2026-10-25T00:30:00', '2026-10-25T01:30:00'])
  })

  it('follows real time when the minute or the hour begins with *', () => {
    expect(autumn('*/30 * * * *')).toEqual([
      '2026-10-24T23:30:00',
      '2026-10-25T00:00:00',
      '2026-10-25T00:30:00',
      '2026-10-25T01:00:00',
      '2026-10-25T01:30:00',
      '2026-10-25T02:00:00',
    ])
    expect(autumn('*/30 2 * * *')).toHaveLength(4)
  })

  it('treats a wildcard as a fixed time once dst is set', () => {
    const once = ['2026-10-24T23:30:00', '2026-10-25T00:00:00', '2026-10-25T00:30:00', '2026-10-25T02:00:00']
    expect(autumn('*/30 * * * *', {})).toEqual(once)
    expect(autumn('*/30 2 * * *', { gap: 'skip' })).toHaveLength(2)
  })

  it('searches correctly from the middle of the repeat, in both directions', () => {
    const once = timeline({ cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    expect(iso(once.next(at('2026-10-25T01:10:00Z')))).toBe('2026-10-26T01:30:00')
    expect(iso(once.previous(at('2026-10-25T01:10:00Z')))).toBe('2026-10-25T00:30:00')
    expect(iso(once.previous(at('2026-10-25T01:50:00Z')))).toBe('2026-10-25T00:30:00')
  })

  it('finds the last and the first tick of the calendar there', () => {
    const both = timeline({ cron: '0 30 2 25 10 * 2026', timezone: 'Europe/Berlin', dst: { repeat: 'both' } })
    expect(iso(both.next(at('2026-10-25T00:45:00Z')))).toBe('2026-10-25T01:30:00')
    expect(iso(both.previous(at('2026-10-25T01:10:00Z')))).toBe('2026-10-25T00:30:00')
    expect(both.next(at('2026-10-25T01:30:00Z'))).toBeUndefined()
    expect(both.previous(at('2026-10-25T00:30:00Z'))).toBeUndefined()
  })
})

describe('zones with unusual clocks', () => {
  test('Australia/Lord_Howe shifts by half an hour', () => {
    const zone = 'Australia/Lord_Howe'
    // 4 October 2026: 02:00 to 02:30. 5 April 2026: 02:00 back to 01:30.
    expect(ticks('15 2 * * *', zone, '2026-10-03T12:00:00Z', '2026-10-04T12:00:00Z')).toEqual(['2026-10-03T15:30:00'])
    expect(ticks('30 2 * * *', zone, '2026-10-03T12:00:00Z', '2026-10-04T12:00:00Z')).toEqual(['2026-10-03T15:30:00'])
    expect(ticks('45 1 * * *', zone, '2026-04-04T12:00:00Z', '2026-04-05T12:00:00Z')).toEqual(['2026-04-04T14:45:00'])
    expect(ticks('45 1 * * *', zone, '2026-04-04T12:00:00Z', '2026-04-05T12:00:00Z', { repeat: 'both' })).toEqual([
      '2026-04-04T14:45:00',
      '2026-04-04T15:15:00',
    ])
  })

  test('Pacific/Apia skipped 30 December 2011, and its ticks are skipped', () => {
    const noon = ticks('0 12 * * *', 'Pacific/Apia', '2011-12-29T00:00:00Z', '2012-01-01T00:00:00Z')
    expect(noon).toEqual(['2011-12-29T22:00:00', '2011-12-30T22:00:00', '2011-12-31T22:00:00'])
    const thirtieth = timeline({ cron: '0 12 30 12 *', timezone: 'Pacific/Apia', dst: { gap: 'shift' } })
    expect(iso(thirtieth.next(at('2011-01-01T00:00:00Z')))).toBe('2012-12-29T22:00:00')
    expect(iso(thirtieth.previous(at('2012-06-01T00:00:00Z')))).toBe('2010-12-30T22:00:00')
  })

  test('Africa/Cairo has no midnight on the day that summer time begins', () => {
    const daily = ticks('@daily', 'Africa/Cairo', '2026-04-22T12:00:00Z', '2026-04-25T12:00:00Z')
    expect(daily).toEqual(['2026-04-22T22:00:00', '2026-04-23T22:00:00', '2026-04-24T21:00:00'])
    // On 29 October 2026 the hour before midnight occurs twice.
    expect(ticks('30 23 * * *', 'Africa/Cairo', '2026-10-29T12:00:00Z', '2026-10-30T12:00:00Z')).toEqual([
      '2026-10-29T20:30:00',
    ])
    expect(ticks('@daily', 'Africa/Cairo', '2026-10-29T12:00:00Z', '2026-10-30T12:00:00Z')).toEqual([
      '2026-10-29T22:00:00',
    ])
  })

  test('America/Havana has no midnight in spring, and two in autumn', () => {
    expect(ticks('15 0 * * *', 'America/Havana', '2026-03-08T00:00:00Z', '2026-03-09T00:00:00Z')).toEqual([
      '2026-03-08T05:00:00',
    ])
    expect(ticks('@daily', 'America/Havana', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z')).toEqual([
      '2026-11-01T04:00:00',
    ])
    expect(
      ticks('@daily', 'America/Havana', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z', { repeat: 'both' }),
    ).toEqual(['2026-11-01T04:00:00', '2026-11-01T05:00:00'])
  })

  test('Asia/Beirut has no midnight in spring', () => {
    expect(ticks('0 0 29 3 *', 'Asia/Beirut', '2026-01-01T00:00:00Z', '2026-12-31T00:00:00Z')).toEqual([
      '2026-03-28T22:00:00',
    ])
    expect(ticks('0 0 * * *', 'Asia/Beirut', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z', { gap: 'skip' })).toEqual(
      [],
    )
  })

  test('Europe/Dublin has summer time, although its law calls the winter the exception', () => {
    expect(ticks('30 1 * * *', 'Europe/Dublin', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z')).toEqual([
      '2026-03-29T01:00:00',
    ])
    expect(ticks('30 1 * * *', 'Europe/Dublin', '2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z')).toEqual([
      '2026-10-25T00:30:00',
    ])
    expect(ticks('0 12 1 1,7 *', 'Europe/Dublin', '2026-01-01T00:00:00Z', '2026-12-31T00:00:00Z')).toEqual([
      '2026-01-01T12:00:00',
      '2026-07-01T11:00:00',
    ])
  })

  test('Africa/Casablanca leaves its summer time for Ramadan', () => {
    const zone = 'Africa/Casablanca'
    expect(ticks('30 2 * * *', zone, '2026-02-14T12:00:00Z', '2026-02-15T12:00:00Z')).toEqual(['2026-02-15T01:30:00'])
    expect(ticks('30 2 * * *', zone, '2026-03-21T12:00:00Z', '2026-03-22T12:00:00Z')).toEqual(['2026-03-22T02:00:00'])
    expect(ticks('0 9 1 3,4 *', zone, '2026-01-01T00:00:00Z', '2026-12-31T00:00:00Z')).toEqual([
      '2026-03-01T09:00:00',
      '2026-04-01T08:00:00',
    ])
  })

  test('Africa/Monrovia was 44 minutes and 30 seconds behind until 1972', () => {
    const zone = 'Africa/Monrovia'
    expect(ticks('0 12 * * *', zone, '1971-06-01T00:00:00Z', '1971-06-01T23:00:00Z')).toEqual(['1971-06-01T12:44:30'])
    expect(ticks('30 0 * * *', zone, '1972-01-06T12:00:00Z', '1972-01-08T12:00:00Z')).toEqual([
      '1972-01-07T00:44:30',
      '1972-01-08T00:30:00',
    ])
  })

  test('far years keep the last known rules', () => {
    const july = timeline({ cron: '0 0 12 1 7 * 9998', timezone: 'Europe/Berlin' })
    expect(iso(july.next(0))).toBe('9998-07-01T10:00:00')
    expect(iso(july.previous(MAX_INSTANT))).toBe('9998-07-01T10:00:00')
    const daily = timeline({ cron: '30 2 * * *', timezone: 'America/New_York' })
    expect(daily.between(at('9998-01-01T05:00:00Z') - 1, at('9999-01-01T04:59:59Z'), 999)).toHaveLength(365)
  })
})

describe('the ends of the calendar', () => {
  const first = at('0001-01-01T00:00:00Z')

  test('are the years 1 and 9999', () => {
    const everySecond = timeline('* * * * * *')
    expect(everySecond.next(Number.NEGATIVE_INFINITY)).toBe(first)
    expect(everySecond.previous(Number.POSITIVE_INFINITY)).toBe(at('9999-12-31T23:59:59Z'))
    expect(everySecond.next(at('9999-12-31T23:59:59Z'))).toBeUndefined()
    expect(everySecond.previous(first)).toBeUndefined()
    expect(everySecond.next(Number.POSITIVE_INFINITY)).toBeUndefined()
    expect(everySecond.previous(Number.NEGATIVE_INFINITY)).toBeUndefined()
  })

  test('are instants: local times of a zone do not extend them', () => {
    for (const timezone of ['America/New_York', 'Asia/Tokyo']) {
      const daily = timeline({ cron: '@daily', timezone })
      const [earliest, latest] = [daily.next(Number.NEGATIVE_INFINITY), daily.previous(Number.POSITIVE_INFINITY)]
      expect(earliest).toBeGreaterThanOrEqual(MIN_INSTANT)
      expect(latest).toBeLessThanOrEqual(MAX_INSTANT)
      expect(daily.previous(earliest ?? 0)).toBeUndefined()
      expect(daily.next(latest ?? 0)).toBeUndefined()
      expect(daily.next(Number.POSITIVE_INFINITY)).toBeUndefined()
    }
  })

  test('leave an expression without further years without a tick', () => {
    const once = timeline('0 0 0 1 1 * 2030')
    expect(once.previous(at('2020-01-01T00:00:00Z'))).toBeUndefined()
    expect(once.next(at('2030-01-01T00:00:00Z'))).toBeUndefined()
    expect(iso(once.previous(at('2040-01-01T00:00:00Z')))).toBe('2030-01-01T00:00:00')
    expect(once.count(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)).toBe(1)
  })

  test('a NaN or infinite instant has no tick', () => {
    for (const timezone of ['UTC', 'Europe/Berlin']) {
      const daily = timeline({ cron: '@daily', timezone })
      expect(daily.next(Number.NaN)).toBeUndefined()
      expect(daily.previous(Number.NaN)).toBeUndefined()
      expect(daily.between(Number.NaN, 0, 5)).toEqual([])
      expect(daily.count(Number.NaN, 0)).toBe(0)
    }
  })
})

describe('next and previous', () => {
  const daily = timeline('0 9 * * *')
  const nine = at('2026-05-05T09:00:00Z')

  it('are strictly after and before', () => {
    expect(daily.next(nine)).toBe(nine + 86_400_000)
    expect(daily.previous(nine)).toBe(nine - 86_400_000)
  })

  it('respect milliseconds', () => {
    expect(daily.next(nine - 1)).toBe(nine)
    expect(daily.next(nine - 0.5)).toBe(nine)
    expect(daily.previous(nine + 1)).toBe(nine)
    expect(daily.previous(nine + 0.5)).toBe(nine)
    expect(daily.next(nine + 999)).toBe(nine + 86_400_000)
  })

  it('work before 1970', () => {
    expect(iso(daily.next(at('1969-12-31T09:00:00Z') - 1))).toBe('1969-12-31T09:00:00')
    expect(iso(daily.previous(at('1900-03-01T00:00:00Z')))).toBe('1900-02-28T09:00:00')
  })
})

describe('over two years of clock changes', () => {
  const zones = [
    'Europe/Berlin',
    'America/Havana',
    'Australia/Lord_Howe',
    'Africa/Cairo',
    'Pacific/Apia',
    'Antarctica/Troll',
  ]
  const rules: (DstRule | undefined)[] = [
    undefined,
    {},
    { gap: 'skip' },
    { repeat: 'both' },
    { gap: 'skip', repeat: 'both' },
  ]
  const expressions = [
    '30 * * * *',
    '*/20 0-3 * * *',
    '15,45 0-4,23 * * *',
    '0 0 0 L * *',
    '30 2 * * SUN',
    '0 30 1 * 3,4 * 2011',
  ]
  const [from, to] = [at('2010-06-01T00:00:00Z'), at('2012-06-01T00:00:00Z')]

  it.each(zones)('previous mirrors next, and count equals the length of between, in %s', (timezone) => {
    for (const cron of expressions) {
      for (const dst of rules) {
        const line = timeline({ cron, timezone, ...(dst === undefined ? {} : { dst }) })
        const forwards = line.between(from, to, 100_000)
        const backwards: number[] = []
        for (let tick = line.previous(to + 1); tick !== undefined && tick > from; tick = line.previous(tick))
          backwards.push(tick)
        expect(backwards.reverse()).toEqual(forwards)
        expect(line.count(from, to)).toBe(forwards.length)
        const middle = forwards[forwards.length >> 1] ?? from
        expect(line.count(from, middle) + line.count(middle, to)).toBe(forwards.length)
      }
    }
  })
})

describe('between', () => {
  const hourly = timeline('@hourly')

  it('lists ticks after the start, up to and including the end', () => {
    expect(hourly.between(0, 3 * 3_600_000, 10)).toEqual([3_600_000, 7_200_000, 10_800_000])
  })

  it('returns at most the limit', () => {
    expect(hourly.between(0, Number.POSITIVE_INFINITY, 2)).toEqual([3_600_000, 7_200_000])
    expect(hourly.between(0, 1e12, 0)).toEqual([])
    expect(hourly.between(0, 1e12, -1)).toEqual([])
  })

  it('is empty when the end is not after the start', () => {
    expect(hourly.between(1e12, 0, 10)).toEqual([])
    expect(hourly.count(1e12, 0)).toBe(0)
    expect(hourly.count(1e12, 1e12)).toBe(0)
  })
})

test('a century of seconds is counted, not enumerated', () => {
  const line = timeline({ cron: '* * * * * *', timezone: 'Europe/Berlin' })
  const started = performance.now()
  expect(line.count(at('1950-01-01T00:00:00Z'), at('2050-01-01T00:00:00Z'))).toBe(36_525 * 86_400)
  expect(performance.now() - started).toBeLessThan(1_000)
})
