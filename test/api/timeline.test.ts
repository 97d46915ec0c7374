import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { isValid, timeline } from '../../src/api/time/index.js'

const iso = (ticks: readonly number[]) => ticks.map((tick) => new Date(tick).toISOString().slice(0, 16))

describe('belfry/time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date('2026-03-02T12:00:00Z') })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const weekdays = () => timeline({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' })

  it('counts from now when no instant is given', () => {
    expect(weekdays().next()).toBe(Date.parse('2026-03-03T08:00:00Z'))
    expect(weekdays().previous()).toBe(Date.parse('2026-03-02T08:00:00Z'))
    expect(iso(weekdays().nextRuns(2))).toEqual(['2026-03-03T08:00', '2026-03-04T08:00'])
    expect(iso(weekdays().previousRuns(2))).toEqual(['2026-03-02T08:00', '2026-02-27T08:00'])
  })

  it('takes dates, milliseconds and text; text without an offset is local to the zone', () => {
    const tick = Date.parse('2026-03-03T08:00:00Z')
    for (const after of [new Date('2026-03-03T07:00:00Z'), tick - 1, '2026-03-03T07:59:59Z', '2026-03-03T08:59:59']) {
      expect(weekdays().next(after)).toBe(tick)
    }
    expect(() => weekdays().next('soon')).toThrow('instant "soon" is not understood')
    expect(() => weekdays().next(1_772_500_000)).toThrow('looks like seconds')
  })

  it('can be iterated', () => {
    const ticks: number[] = []
    for (const tick of weekdays()) if (ticks.push(tick) === 3) break
    expect(iso(ticks)).toEqual(['2026-03-03T08:00', '2026-03-04T08:00', '2026-03-05T08:00'])
  })

  it('says whether a tick falls in a second', () => {
    expect(weekdays().match('2026-03-03T09:00:00.500')).toBe(true)
    expect(weekdays().match('2026-03-03T09:00:01')).toBe(false)
    expect(weekdays().match()).toBe(false)
  })

  it('says what it is made of', () => {
    const line = weekdays()
    expect([line.kind, line.cron, line.timezone, String(line)]).toEqual([
      'cron',
      '0 9 * * 1-5',
      'Europe/Berlin',
      '0 9 * * 1-5',
    ])
    expect(String(timeline('@every 90s'))).toBe('@every 90000ms')
    expect(timeline('@every 90s')).toMatchObject({ kind: 'every', cron: undefined, timezone: undefined })
  })

  it('refuses an unlimited list of more than a thousand ticks', () => {
    const seconds = timeline('* * * * * *')
    expect(seconds.between('2026-03-01T00:00:00Z', '2026-03-01T00:16:40Z')).toHaveLength(1_000)
    expect(() => seconds.between('2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z')).toThrow(
      'between(): there are more than 1000 ticks; give a limit',
    )
    expect(seconds.between('2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z', 2_000)).toHaveLength(2_000)
    expect(() => seconds.nextRuns(-1)).toThrow('a number of ticks is "-1"')
  })

  it('refuses unknown options, with the right name', () => {
    for (const name of ['tz', 'zone', 'timeZone', 'timezon']) {
      expect(() => timeline({ cron: '0 9 * * *', [name]: 'Europe/Berlin' } as never)).toThrow(
        `timeline(): "${name}" is not an option; did you mean "timezone"?`,
      )
    }
  })

  it('validates without throwing', () => {
    expect(['0 9 * * *', '0 0 30 2 *', '@every 5m', 'daily'].map(isValid)).toEqual([true, false, true, false])
  })
})
