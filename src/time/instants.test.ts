import { describe, expect, it, test } from 'vitest'
import { timeline } from './index.js'

const [one, two, three] = ['2026-03-01T09:00:00Z', '2026-03-02T09:00:00Z', '2026-04-01T00:00:00Z'].map((at) =>
  Date.parse(at),
) as [number, number, number]

describe('@at', () => {
  it('takes one instant or many, as ISO text, text of unix seconds or epoch milliseconds, in any order', () => {
    const all = [one, two, three]
    for (const spec of [
      '@at 2026-03-01T09:00:00Z 2026-03-02T09:00:00Z 2026-04-01T00:00:00Z',
      '@at 2026-04-01T00:00:00Z,2026-03-01T09:00:00Z, 2026-03-02T10:00:00+01:00',
      `@at ${three / 1_000} ${one / 1_000} ${two / 1_000} ${one / 1_000}`,
      { at: [new Date(two), '2026-03-01T09:00:00Z', three] },
      { at: ['2026-03-01T10:00', '2026-03-02T10:00', '2026-04-01T02:00'], timezone: 'Europe/Berlin' },
      { cron: '@at 2026-03-01T10:00,2026-03-02T10:00,2026-04-01T02:00', timezone: 'Europe/Berlin' },
    ]) {
      expect(timeline(spec).between(0, Number.POSITIVE_INFINITY, 10)).toEqual(all)
    }
    expect(timeline({ at: new Date(one) }).next(0)).toBe(one)
  })

  it('answers next, previous, between and count', () => {
    const line = timeline({ at: [one, two, three].map((ms) => new Date(ms)) })
    expect(line.next(one - 1)).toBe(one)
    expect(line.next(one)).toBe(two)
    expect(line.next(three)).toBeUndefined()
    expect(line.previous(one)).toBeUndefined()
    expect(line.previous(one + 0.5)).toBe(one)
    expect(line.previous(three)).toBe(two)
    expect(line.previous(Number.POSITIVE_INFINITY)).toBe(three)
    expect(line.between(one, three, 10)).toEqual([two, three])
    expect(line.between(0, three, 2)).toEqual([one, two])
    expect(line.between(three, one, 10)).toEqual([])
    expect(line.count(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)).toBe(3)
    expect(line.count(one, two)).toBe(1)
    expect(line.count(three, one)).toBe(0)
  })

  it('fires local times in a gap at its end, and repeated ones at the first occurrence', () => {
    const line = timeline({ at: ['2026-03-29T02:30', '2026-10-25T02:30'], timezone: 'Europe/Berlin' })
    const ticks = line.between(0, Number.POSITIVE_INFINITY, 9).map((tick) => new Date(tick).toISOString())
    expect(ticks).toEqual(['2026-03-29T01:00:00.000Z', '2026-10-25T00:30:00.000Z'])
  })
})

describe('a bad list', () => {
  it.each([
    ['@at', 'INSTANTS_INVALID', 'the list of instants is empty: name at least one'],
    [{ at: [] }, 'INSTANTS_INVALID', 'the list of instants is empty: name at least one'],
    [{ at: Array(10_001).fill('1') }, 'INSTANTS_INVALID', 'the list has 10001 instants: at most 10000 are allowed'],
    [
      { at: ['2026-03-01T09:00:00.100Z', '2026-03-01T09:00:00.900Z'] },
      'INSTANTS_INVALID',
      '2026-03-01T09:00:00.100Z and 2026-03-01T09:00:00.900Z fall in the same second: their ticks would share an id',
    ],
    ['@at tomorrow', 'INSTANT_SYNTAX', undefined],
    ['@at 2026-03-01T09:00', 'INSTANT_SYNTAX', undefined],
    [{ at: null as never }, 'INSTANT_SYNTAX', undefined],
    [{ at: '2026-03-01T09:00', timezone: 'Mars/Olympus' }, 'ZONE_UNKNOWN', undefined],
    [{ cron: '@at 0', dst: {} }, 'DST_INVALID', 'dst does not apply to @at: remove it'],
  ])('%j is refused', (spec, code, message) => {
    expect(() => timeline(spec)).toThrowError(
      expect.objectContaining({ code, ...(message === undefined ? {} : { message }) }),
    )
  })
})

test('a list is described in words', () => {
  expect(timeline({ at: '0' }).describe()).toBe('Once at 1970-01-01T00:00:00Z')
  expect(timeline({ at: ['0', '60'] }).describe()).toBe('Once at 1970-01-01T00:00:00Z, and at 1 more instant')
  expect(timeline({ at: ['0', '60', '120'] }).describe()).toBe('Once at 1970-01-01T00:00:00Z, and at 2 more instants')
})
