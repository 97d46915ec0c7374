import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError, durationMs, instantMs, timeline } from './index.js'

/** The time limit of a single call, in milliseconds. */
const FEW = 5

/** Measures a call, which may throw only Belfry errors. A slow call is repeated, because the machine may have been busy. */
function timed(call: () => void): number {
  let fastest = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5 && fastest > FEW; round += 1) {
    const started = performance.now()
    try {
      call()
    } catch (error) {
      if (!(error instanceof BelfryError) || !/^[A-Z_]+$/.test(error.code)) throw error
    }
    fastest = Math.min(fastest, performance.now() - started)
  }
  return fastest
}

function useTimeline(spec: unknown): void {
  const line = timeline(spec as string)
  const next = line.next(1.7e12)
  const previous = line.previous(1.7e12)
  if (next !== undefined) expect(next).toBeGreaterThan(1.7e12)
  if (previous !== undefined) expect(previous).toBeLessThan(1.7e12)
  line.between(-1e13, 1e13, 3)
  expect(line.describe()).toBeTypeOf('string')
}

const cronish = fc.string({
  unit: fc.constantFrom(
    ...'0123456789*/,-LW#+? \t',
    ...['JAN', 'feb', 'MON', 'sun', ' * ', '@', '@every ', '@at ', '1h', 'P', 'T'],
  ),
  maxLength: 300,
})

/** Five to seven fields of plausible text, which gets further into the parser than random text. */
const value = fc.oneof(
  fc.integer({ min: 0, max: 62 }).map(String),
  fc.constantFrom('*', '?', 'L', 'LW', 'L-3', '15W', 'FRI', 'fri#2', '5L', '5#L', '+MON', 'JAN', '2030', '9999', ''),
)
const entry = fc.oneof(
  value,
  fc.tuple(value, value).map(([a, b]) => `${a}-${b}`),
  fc.tuple(value, value).map(([a, b]) => `${a}/${b}`),
  fc.tuple(value, value, value).map(([a, b, c]) => `${a}-${b}/${c}`),
)
const field = fc.array(entry, { minLength: 1, maxLength: 4 }).map((entries) => entries.join(','))
const fields = fc.array(field, { minLength: 4, maxLength: 8 }).map((all) => all.join(' '))

const anyText = fc.string({ unit: 'binary', maxLength: 300 })

test.each([
  ['cron-like noise', cronish],
  ['plausible fields', fields],
  ['any text', anyText],
])('no expression of %s takes long, or throws anything but an error with a code', (_name, text) => {
  fc.assert(
    fc.property(text, fc.constantFrom(undefined, 'Europe/Berlin', 'Africa/Casablanca'), (cron, timezone) => {
      expect(timed(() => useTimeline(timezone === undefined ? cron : { cron, timezone }))).toBeLessThan(FEW)
    }),
    { numRuns: 4_000 },
  )
})

test('no value of any kind throws anything but an error with a code', () => {
  const spec = fc.oneof(
    fc.anything(),
    fc.record({ cron: fc.anything(), timezone: fc.anything(), dst: fc.anything() }, { requiredKeys: ['cron'] }),
    fc.record({ cron: fc.constant('@daily'), timezone: anyText, dst: fc.anything() }, { requiredKeys: ['cron'] }),
    fc.record({ every: fc.oneof(fc.anything(), anyText, cronish) }),
    fc.record({ at: fc.oneof(fc.anything(), fc.array(fc.oneof(fc.anything(), anyText, fc.date()))) }),
  )
  fc.assert(
    fc.property(spec, (anything) => {
      timed(() => useTimeline(anything))
    }),
    { numRuns: 4_000 },
  )
})

test('no duration and no instant takes long, or throws anything but an error with a code', () => {
  const durationish = fc.string({
    unit: fc.constantFrom(...'0123456789.PTWDHMSwdhms', 'ms', 'mo', 'y', ' ', '-'),
    maxLength: 300,
  })
  const instantish = fc.string({ unit: fc.constantFrom(...'0123456789-:TZ.+ '), maxLength: 60 })
  fc.assert(
    fc.property(fc.oneof(durationish, anyText), fc.oneof(instantish, anyText), (duration, instant) => {
      expect(timed(() => durationMs(duration))).toBeLessThan(FEW)
      expect(timed(() => instantMs(instant))).toBeLessThan(FEW)
    }),
    { numRuns: 5_000 },
  )
})

test('the expressions with the longest searches are fast, too', () => {
  for (const cron of [
    '0 0 29 2 +MON',
    '0 0 0 29 2 +MON 9000-9999',
    '0 0 0 29 2 +TUE */400',
    '59 59 23 31 12 * 9999',
    '0 0 0 1 1 * 1',
    `* * * * * * ${Array.from({ length: 45 }, (_, index) => 9_000 + index).join(',')}`,
  ]) {
    for (const timezone of ['UTC', 'Europe/Berlin', 'America/Havana']) {
      for (const start of [-6e13, 0, 1.7e12, 2.5e14]) {
        const line = timeline({ cron, timezone })
        expect(timed(() => line.next(start))).toBeLessThan(FEW)
        expect(timed(() => line.previous(start))).toBeLessThan(FEW)
      }
    }
  }
})
