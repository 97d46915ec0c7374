import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSchedule } from '../../src/api/schedules/schedule-input.js'
import { misreadField } from '../../src/server/routes/import-lines.js'
import { scheduleInput } from '../../src/server/shapes/schedule.js'

/** Values of the wrong type or out of range. */
const ODD = [
  null,
  true,
  false,
  '',
  ' ',
  'x',
  0,
  1,
  -1,
  1.5,
  1e300,
  [],
  [null],
  {},
  { x: 1 },
  { name: 'noop' },
  '\u0000',
]
const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  cron: ['0 9 * * 1-5', '@daily', '@every 1h', '@at 2027-01-01T00:00:00Z'],
  every: ['15m', 60_000],
  at: ['2027-01-01T00:00:00Z', ['2027-01-01T00:00:00Z', 1_900_000_000]],
  timezone: ['Europe/Berlin', 'UTC'],
  dst: [{ gap: 'skip' }, { repeat: 'both' }, { gap: 'skip', repeat: null }, { gap: null }, { x: 1 }],
  startsAt: ['2027-01-01T00:00:00Z'],
  endsAt: ['2028-01-01T00:00:00Z'],
  job: ['noop'],
  to: ['webhook'],
  toOptions: [{ url: 'http://x' }],
  payload: [{ user: 1 }],
  overlap: ['skip', 'queue-all'],
  missed: [
    ...['all', { policy: 'all', within: '1h', max: 5 }, { policy: 'latest' }, { policy: 'all', max: null }],
    ...[{ policy: 'all', within: null }, { policy: null }, { policy: 'all', x: 1 }, { policy: 'all', max: 1.5 }],
  ],
  backlog: ['keep', 'drop'],
  deadline: ['5m'],
  jitter: ['30s'],
  times: [3],
  priority: [5],
  keep: ['failures'],
  onFinish: ['keep'],
  stranger: ['x'],
}

const fields = fc.record(
  Object.fromEntries(
    Object.entries(GOOD).map(([field, good]) => [
      field,
      fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...good) }, fc.constantFrom(...ODD)),
    ]),
  ),
  { requiredKeys: [] },
)
/** A valid schedule, and fields of which the test adds one, so that this field alone decides. */
const near = fc.tuple(fc.constantFrom({ cron: '0 9 * * *', job: 'noop' }, { every: '1h', to: 'webhook' }), fields)

function libraryTakes(given: object): boolean {
  try {
    parseSchedule('s', given, 10_000)
    return true
  } catch {
    return false
  }
}

describe('a line of an import, which the library checks', () => {
  it('is refused whenever the shape would refuse it', () => {
    const odd = ([base, extra]: readonly [object, object]) => {
      const [first] = Object.entries(extra)
      return first === undefined ? base : { ...base, [first[0]]: first[1] }
    }
    let refused = 0
    const check = (given: object) => {
      if (misreadField(given) !== undefined || scheduleInput.safeParse(given).success) return
      refused += 1
      if (libraryTakes(given)) expect.fail(`the library takes ${JSON.stringify(given)}`)
    }
    fc.assert(
      fc.property(near, (pair) => check(odd(pair))),
      { numRuns: 5_000 },
    )
    fc.assert(fc.property(fields, check), { numRuns: 5_000 })
    for (const [field, good] of Object.entries(GOOD)) {
      for (const value of [...good, ...ODD]) check({ cron: '0 9 * * *', job: 'noop', [field]: value })
      for (const value of [...good, ...ODD]) check({ every: '1h', to: 'webhook', [field]: value })
    }
    expect(refused).toBeGreaterThan(3_000)
  })
})
