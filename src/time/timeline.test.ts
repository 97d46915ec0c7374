import { describe, expect, it, test } from 'vitest'
import { BelfryError, openTimeline, parseTimeline, timeline } from './index.js'

describe('a spec', () => {
  it('is an expression, or an object with one of cron, every and at', () => {
    const kinds = ['0 9 * * *', { cron: '@daily' }, '@every 1h', { every: '1h' }, '@at 0', { at: '0' }].map(
      (spec) => timeline(spec).kind,
    )
    expect(kinds).toEqual(['cron', 'cron', 'every', 'every', 'at', 'at'])
  })

  it('becomes plain data, which parses to the same timeline', () => {
    const specs = [
      '0 9 * * *',
      { cron: '@daily', timezone: 'Asia/Tokyo', dst: { gap: 'skip' } },
      '@every 1h',
      { at: ['5', '1'] },
    ] as const
    for (const spec of specs) {
      const parsed = JSON.parse(JSON.stringify(parseTimeline(spec)))
      expect(openTimeline(parsed, 500).between(0, 1e12, 5)).toEqual(timeline(spec, 500).between(0, 1e12, 5))
    }
    expect(parseTimeline({ cron: '@daily', payload: 'large' } as never)).toEqual({ cron: '@daily' })
    expect(parseTimeline('@every 1h')).toEqual({ every: 3_600_000 })
    expect(parseTimeline({ at: ['1970-01-01T00:00:05Z', '1'] })).toEqual({ at: [1_000, 5_000] })
  })

  it.each([
    [{}, 'TIMELINE_INVALID', 'a timeline needs one of cron, every or at'],
    [null, 'TIMELINE_INVALID', 'a timeline needs one of cron, every or at'],
    [undefined, 'TIMELINE_INVALID', 'a timeline needs one of cron, every or at'],
    [42, 'TIMELINE_INVALID', 'a timeline needs one of cron, every or at'],
    [[], 'TIMELINE_INVALID', 'a timeline needs one of cron, every or at'],
    [
      { cron: '@daily', every: '1h' },
      'TIMELINE_INVALID',
      'a timeline takes one of cron, every and at, not cron and every',
    ],
    [{ cron: 5 }, 'TIMELINE_INVALID', 'cron must be text, not "5"'],
    [{ cron: null }, 'TIMELINE_INVALID', 'cron must be text, not "null"'],
    // JSON may contain an object that cannot be converted to text.
    [{ cron: { toString: 1 } }, 'TIMELINE_INVALID', 'cron must be text, not "object"'],
    [{ cron: '@daily', timezone: null }, 'ZONE_UNKNOWN', undefined],
    [{ cron: '@daily', timezone: ['UTC'] }, 'ZONE_UNKNOWN', undefined],
    [{ cron: '@daily', timezone: 'Mars/Olympus' }, 'ZONE_UNKNOWN', undefined],
    [
      { cron: '@daily', dst: null },
      'DST_INVALID',
      'dst is "null": write { gap: "shift" or "skip", repeat: "first" or "both" }',
    ],
    [{ cron: '@daily', dst: 'skip' }, 'DST_INVALID', undefined],
    [
      { cron: '@daily', dst: { gap: 'no' } },
      'DST_INVALID',
      'dst is { gap: "no", repeat: "first" }: gap is "shift" or "skip", repeat is "first" or "both"',
    ],
    [{ cron: '@daily', dst: { repeat: null } }, 'DST_INVALID', undefined],
    [
      { cron: '@daily', dst: { repeats: 'both' } },
      'DST_INVALID',
      'dst has no "repeats": its fields are gap and repeat',
    ],
    [{ cron: '@daily', dst: [] }, 'DST_INVALID', undefined],
  ])('%j is refused', (spec, code, message) => {
    // Fills the cache: an invalid spec must not pass because its cache key equals that of a valid spec.
    timeline({ cron: '@daily', dst: {} })
    timeline('@daily')
    expect(() => timeline(spec as never)).toThrowError(
      expect.objectContaining({ code, ...(message === undefined ? {} : { message }) }),
    )
  })
})

describe('parsed expressions', () => {
  it('are shared for the same expression, zone and dst', () => {
    const spec = { cron: '7 7 * * *', timezone: 'Europe/Berlin' }
    expect(timeline({ ...spec })).toBe(timeline({ ...spec }))
    expect(timeline('7 7 * * *')).toBe(timeline({ cron: '7 7 * * *', timezone: 'UTC' }))
    expect(timeline({ ...spec, dst: { gap: 'skip' } })).toBe(
      timeline({ ...spec, dst: { gap: 'skip', repeat: 'first' } }),
    )
  })

  it('are not shared for different ones', () => {
    const spec = { cron: '7 7 * * *', timezone: 'Europe/Berlin' }
    const others = [
      timeline({ ...spec, timezone: 'Europe/Paris' }),
      timeline({ ...spec, cron: '8 7 * * *' }),
      timeline({ ...spec, dst: {} }),
      timeline({ ...spec, dst: { gap: 'skip' } }),
      timeline({ ...spec, dst: { repeat: 'both' } }),
    ]
    expect(new Set([timeline(spec), ...others]).size).toBe(6)
  })

  it('are not found by a spec that only produces the same key text', () => {
    timeline({ cron: '7 7 * * *', timezone: 'Europe/Berlin', dst: { gap: 'shift', repeat: 'first' } })
    for (const spec of [
      { cron: '7 7 * * *|Europe/Berlin' },
      { cron: '|7 7 * * *', timezone: 'Europe/Berlin' },
      { cron: '7 7 * * *', timezone: 'Europe/Berlin|' },
      { cron: '7 7 * * *', timezone: '00Europe/Berlin' },
    ]) {
      expect(() => timeline(spec)).toThrowError(BelfryError)
    }
  })
})

test('an error quotes its input shortened, on one line', () => {
  const error = (() => {
    try {
      timeline(`${'\n'.repeat(50)}${'x'.repeat(100)}`)
    } catch (caught) {
      return caught as BelfryError
    }
    return undefined
  })()
  expect(error?.message).not.toContain('\n')
  expect(error?.message.length).toBeLessThan(300)
})
