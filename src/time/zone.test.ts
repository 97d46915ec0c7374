import { describe, expect, it, test } from 'vitest'
import { instantOfLocal, type Segment, type Zone, zone } from './zone.js'

const at = (iso: string) => Date.parse(iso)
const DAY = 86_400_000
const HOUR = 3_600_000

/** The long mode checks every zone, with more samples. */
const { BELFRY_ORACLE_CASES } = process.env
const LONG = BELFRY_ORACLE_CASES !== undefined

const SAMPLE = [
  'Africa/Casablanca',
  'Africa/Monrovia',
  'America/Havana',
  'America/Nuuk',
  'Antarctica/Casey',
  'Asia/Gaza',
  'Asia/Manila',
  'Australia/Lord_Howe',
  'Europe/Dublin',
  'Pacific/Apia',
  'Pacific/Kwajalein',
]

/** The wall clock minus the instant. This reads offsets from Intl in another way than zones do. */
function offsets(name: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  return (instant) => {
    const [month = 0, day, year = 0, hour, minute, second] = format.format(instant).split(/\D+/).map(Number)
    return Date.UTC(year, month - 1, day, hour, minute, second) - instant
  }
}

describe('every change of offset is found', () => {
  const [from, to] = ['1880-01-01', '2070-01-01']
  const step = LONG ? 12 * HOUR : DAY

  it.each(LONG ? Intl.supportedValuesOf('timeZone') : SAMPLE)('in %s', { timeout: 120_000 }, (name) => {
    const found = zone(name)
    const offsetAt = offsets(name)
    for (let instant = at(from); instant < at(to); instant += step) {
      if (found.segmentAt(instant).offset !== offsetAt(instant)) {
        throw new Error(`${name} at ${new Date(instant).toISOString()}: ${found.segmentAt(instant).offset}`)
      }
    }
    for (const { start, offset, before } of changesOf(found, at(from), at(to))) {
      expect(offsetAt(start)).toBe(offset)
      expect(offsetAt(start - 1_000)).toBe(before)
    }
  })
})

function changesOf(of: Zone, from: number, to: number): Segment[] {
  const changes: Segment[] = []
  for (let segment = of.segmentAt(from); segment.end < to; segment = of.segmentAt(segment.end)) {
    if (segment.offset !== segment.before && segment.start > from) changes.push(segment)
  }
  return changes
}

test('segments are contiguous', () => {
  const berlin = zone('Europe/Berlin')
  let instant = at('1970-01-01T00:00:00Z')
  while (instant < at('2030-01-01T00:00:00Z')) {
    const segment = berlin.segmentAt(instant)
    expect(segment.start).toBeLessThanOrEqual(instant)
    expect(segment.end).toBeGreaterThan(instant)
    instant = segment.end
  }
})

test('a change in Berlin is known to the second, with the offsets on both sides', () => {
  const { start, offset, before } = zone('Europe/Berlin').segmentAt(at('2026-03-29T01:00:00Z'))
  expect({ start, offset, before }).toEqual({ start: at('2026-03-29T01:00:00Z'), offset: 2 * HOUR, before: HOUR })
  expect(zone('Europe/Berlin').segmentAt(at('2026-03-29T00:59:59Z')).offset).toBe(HOUR)
})

test('an offset may have seconds', () => {
  expect(zone('Africa/Monrovia').segmentAt(at('1970-01-01T00:00:00Z')).offset).toBe(-(44 * 60 + 30) * 1_000)
})

test('names are case-insensitive, and each zone is opened once', () => {
  expect(zone('europe/berlin')).toBe(zone('Europe/Berlin'))
  expect(zone('EUROPE/BERLIN').name).toBe('Europe/Berlin')
  expect(zone('Etc/UTC')).toBe(zone('UTC'))
  expect(zone('utc')).toBe(zone('UTC'))
})

test('an alias is shown as it was given', () => {
  expect(zone('Europe/Kyiv').name).toBe('Europe/Kyiv')
  expect(zone('asia/kolkata').name).toBe('Asia/Kolkata')
})

test('a fixed offset is a zone', () => {
  expect(zone('+05:30')).toMatchObject({ name: '+05:30' })
  expect(zone('+05:30').segmentAt(0).offset).toBe(5.5 * HOUR)
  expect(zone('-03:00').segmentAt(0).offset).toBe(-3 * HOUR)
  expect(zone('+00:00')).toBe(zone('UTC'))
})

test('an unknown zone is refused', () => {
  for (const name of [
    'Mars/Olympus',
    '',
    'Europe',
    '+2',
    '+15:00',
    '+02:60',
    'Europe/Berlin ',
    '../etc/passwd',
    '__proto__',
    'x'.repeat(1_000),
  ]) {
    expect(() => zone(name)).toThrowError(expect.objectContaining({ code: 'ZONE_UNKNOWN' }))
  }
  expect(() => zone('Mars/Olympus')).toThrowError(
    'time zone "Mars/Olympus" is unknown: use an IANA name such as "Europe/Berlin", "UTC", or an offset such as "+05:30"',
  )
  for (const name of [null, 5, {}, ['UTC']]) {
    expect(() => zone(name as never)).toThrowError(expect.objectContaining({ code: 'ZONE_UNKNOWN' }))
  }
})

describe('a local time', () => {
  const berlin = zone('Europe/Berlin')
  const instant = (local: string) => new Date(instantOfLocal(berlin, at(`${local}Z`))).toISOString().slice(0, 16)

  it('is the instant at which the clock shows it', () => {
    expect(instant('2026-01-15T09:00')).toBe('2026-01-15T08:00')
    expect(instant('2026-07-15T09:00')).toBe('2026-07-15T07:00')
  })

  it('in a gap is the end of the gap', () => {
    expect(instant('2026-03-29T01:59')).toBe('2026-03-29T00:59')
    expect(instant('2026-03-29T02:30')).toBe('2026-03-29T01:00')
    expect(instant('2026-03-29T03:00')).toBe('2026-03-29T01:00')
  })

  it('that occurs twice is the first of the two', () => {
    expect(instant('2026-10-25T02:30')).toBe('2026-10-25T00:30')
    expect(instant('2026-10-25T03:00')).toBe('2026-10-25T02:00')
  })
})

describe('years that are copies of others', () => {
  const yearsFrom = (years: readonly number[]) =>
    years.map((year) => Date.parse(`${String(year).padStart(4, '0')}-01-01`))

  it.each(LONG ? Intl.supportedValuesOf('timeZone') : SAMPLE)('have the offsets that Intl has, in %s', (name) => {
    const found = zone(name)
    const offsetAt = offsets(name)
    for (const start of yearsFrom([1000, 1798, 1799, 2128, 2129, 2200, 2399, 2400, 4999, 9998])) {
      for (let instant = start; instant < start + 366 * DAY; instant += 2.5 * DAY) {
        if (found.segmentAt(instant).offset !== offsetAt(instant)) {
          throw new Error(`${name} at ${new Date(instant).toISOString()}: ${found.segmentAt(instant).offset}`)
        }
      }
    }
  })

  it('form a chain of segments without gaps', () => {
    const found = zone('Europe/Berlin')
    for (let instant = at('2127-06-01'); instant < at('2407-01-01'); ) {
      const { end, offset } = found.segmentAt(instant)
      const next = found.segmentAt(end)
      expect([next.start, next.before]).toEqual([end, offset])
      instant = end
    }
  })
})
