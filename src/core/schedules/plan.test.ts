import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_MISSED } from '../policies.js'
import { type Plan, type Plannable, plan, type Unfinished } from './plan.js'
import { scheduleTimeline } from './schedule-timeline.js'

const NOON = Date.UTC(2026, 5, 1, 12)
const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
const YEAR = 365 * 24 * HOUR

function minutely(over: Partial<Plannable> = {}): Plannable {
  return {
    id: 'digest',
    timeline: { cron: '* * * * *' },
    anchor: NOON,
    cursor: NOON,
    overlap: 'allow',
    missed: DEFAULT_MISSED,
    jitterMs: 0,
    ...over,
  }
}

const running: Unfinished = { state: 'running', started: true }
const queued: Unfinished = { state: 'ready', started: false, tick: NOON }

function instants(result: Plan): number[] {
  return result.ticks.map((tick) => tick.at)
}

/** Applies a plan as a store would. */
function applied(schedule: Plannable, { cursor, remaining }: Plan): Plannable {
  return { ...schedule, cursor, ...(remaining === undefined ? {} : { remaining }) }
}

describe('a schedule that is on time', () => {
  it('records the due tick and says when to plan again', () => {
    const result = plan(minutely(), [], NOON + MINUTE + 5, NOON + MINUTE + SECOND)
    expect(result).toEqual({
      ticks: [{ at: NOON + MINUTE, readyAt: NOON + MINUTE, startBy: NOON + 2 * MINUTE, waits: false }],
      skips: [],
      cursor: NOON + MINUTE,
      nextAt: NOON + 2 * MINUTE,
      dueAt: NOON + 2 * MINUTE,
    })
  })

  it('records ticks ahead up to the horizon', () => {
    expect(instants(plan(minutely(), [], NOON + MINUTE - 300, NOON + MINUTE + 700))).toEqual([NOON + MINUTE])
  })

  it('records nothing before the horizon reaches the tick', () => {
    const result = plan(minutely(), [], NOON + 1, NOON + SECOND)
    expect(result).toEqual({ ticks: [], skips: [], cursor: NOON, nextAt: NOON + MINUTE, dueAt: NOON + MINUTE })
  })

  it('records every tick that is due while the oldest is within grace', () => {
    const every = minutely({ timeline: { every: SECOND } })
    expect(instants(plan(every, [], NOON + 5 * SECOND, NOON + 5 * SECOND))).toHaveLength(5)
  })

  it('spreads ready instants by jitter, the same each time', () => {
    const spread = minutely({ jitterMs: 30 * SECOND })
    const [first] = plan(spread, [], NOON + MINUTE, NOON + MINUTE).ticks
    expect(first?.readyAt).toBeGreaterThanOrEqual(NOON + MINUTE)
    expect(first?.readyAt).toBeLessThan(NOON + MINUTE + 30 * SECOND)
    expect(plan(spread, [], NOON + MINUTE, NOON + MINUTE).ticks[0]).toEqual(first)
    const other = plan({ ...spread, id: 'other' }, [], NOON + MINUTE, NOON + MINUTE).ticks[0]
    expect(other?.readyAt).not.toBe(first?.readyAt)
  })
})

describe('bounds', () => {
  it('has no tick before startsAt or after endsAt', () => {
    const bounded = minutely({ startsAt: NOON + 3 * MINUTE, endsAt: NOON + 5 * MINUTE, missed: allMissed() })
    const result = plan(bounded, [], NOON + HOUR, NOON + HOUR)
    expect(instants(result)).toEqual([NOON + 3 * MINUTE, NOON + 4 * MINUTE, NOON + 5 * MINUTE])
    expect(result.nextAt).toBeUndefined()
    expect(result.dueAt).toBeUndefined()
  })

  it('ends when none remain, and counts only what was recorded', () => {
    const two = minutely({ remaining: 2, missed: allMissed() })
    const result = plan(two, [], NOON + HOUR, NOON + HOUR)
    expect(instants(result)).toEqual([NOON + MINUTE, NOON + 2 * MINUTE])
    expect(result).toMatchObject({ remaining: 0, cursor: NOON + 2 * MINUTE })
    expect(result.nextAt).toBeUndefined()
    expect(plan(minutely({ remaining: 2, overlap: 'skip' }), [running], NOON + MINUTE, NOON + MINUTE)).toMatchObject({
      remaining: 2,
    })
  })

  it('fires once at each instant of a list', () => {
    const at = minutely({ timeline: { at: [NOON + 5, NOON + 2 * MINUTE] } })
    const first = plan(at, [], NOON + SECOND, NOON + SECOND)
    expect(instants(first)).toEqual([NOON + 5])
    const second = plan(applied(at, first), [], NOON + 2 * MINUTE, NOON + 2 * MINUTE)
    expect(instants(second)).toEqual([NOON + 2 * MINUTE])
    expect(second.nextAt).toBeUndefined()
  })
})

function allMissed(over: Partial<Plannable['missed']> = {}): Plannable['missed'] {
  return { ...DEFAULT_MISSED, policy: 'all', ...over }
}

describe('ticks that no worker starts', () => {
  const at = NOON + MINUTE
  const startBy = (over: Partial<Plannable>) => plan(minutely(over), [], at, at).ticks[0]?.startBy
  const late: Unfinished = { state: 'ready', started: false, tick: NOON - MINUTE }
  const withPolicy = (over: Partial<Plannable['missed']>) => ({ missed: { ...DEFAULT_MISSED, ...over } })

  it('latest: a tick may start until the next one is due, and within grace', () => {
    expect(startBy({})).toBe(at + MINUTE)
    const grace = DEFAULT_MISSED.graceMs
    expect(startBy({ timeline: { every: SECOND } })).toBe(at + grace)
    expect(startBy(withPolicy({ withinMs: 20 * SECOND }))).toBe(at + 20 * SECOND)
  })

  it('latest: the last tick of a schedule has no such limit', () => {
    expect(startBy({ endsAt: at })).toBeUndefined()
    expect(startBy({ remaining: 1 })).toBeUndefined()
    expect(startBy({ remaining: 2 })).toBe(at + MINUTE)
  })

  it('latest: ticks that may wait for a key or a sink have no such limit', () => {
    expect(startBy({ mayWait: true })).toBeUndefined()
  })

  it('skip: a tick may start within grace; all: within its age', () => {
    expect(startBy(withPolicy({ policy: 'skip' }))).toBe(at + DEFAULT_MISSED.graceMs)
    expect(startBy(withPolicy({ policy: 'all' }))).toBeUndefined()
    expect(startBy(withPolicy({ policy: 'all', withinMs: HOUR }))).toBe(at + HOUR)
  })

  it('keep: only the deadline limits the start', () => {
    expect(startBy({ backlog: 'keep' })).toBeUndefined()
    const skip = withPolicy({ policy: 'skip' })
    expect(startBy({ ...skip, backlog: 'keep' })).toBeUndefined()
    expect(startBy({ ...skip, backlog: 'keep', deadlineMs: HOUR })).toBe(at + HOUR)
  })

  it('says whether the deadline or the missed policy sets the limit', () => {
    const byDeadline = (deadlineMs: number) => plan(minutely({ deadlineMs }), [], at, at).ticks[0]?.byDeadline
    expect(byDeadline(SECOND)).toBe(true)
    expect(byDeadline(HOUR)).toBeUndefined()
  })

  it.each(['skip', 'queue-one', 'queue-all'] as const)('%s: a newer tick takes late ones back', (overlap) => {
    const result = plan(minutely({ overlap }), [late], at, at)
    expect(result.retractThrough).toBe(NOON)
    expect(result.ticks).toMatchObject([{ at, waits: false }])
    expect(plan(minutely({ overlap, backlog: 'keep' }), [late], at, at).retractThrough).toBeUndefined()
    expect(plan(minutely({ overlap, mayWait: true }), [late], at, at).retractThrough).toBeUndefined()
  })

  it('no tick is taken back that is within grace, waits for its key, or waits for a run that has started', () => {
    const taken = (...runs: Unfinished[]) => plan(minutely({ overlap: 'queue-all' }), runs, at, at).retractThrough
    expect(taken({ ...late, tick: at - DEFAULT_MISSED.graceMs })).toBeUndefined()
    expect(taken({ ...late, state: 'waiting' })).toBeUndefined()
    const unstamped = minutely({ overlap: 'queue-all', unstamped: true })
    expect(plan(unstamped, [{ ...late, state: 'waiting' }], at, at).retractThrough).toBeDefined()
    expect(taken(running, late)).toBeUndefined()
    expect(taken(late)).toBeDefined()
  })
})

describe('after an outage', () => {
  const now = NOON + HOUR + 30 * SECOND

  it('latest keeps the newest tick and counts the rest as missed', () => {
    const result = plan(minutely(), [], now, now)
    expect(instants(result)).toEqual([NOON + HOUR])
    expect(result.skips).toEqual([{ from: NOON + MINUTE, to: NOON + 59 * MINUTE, count: 59, reason: 'missed' }])
  })

  it('latest takes back earlier ticks that were recorded and have not started', () => {
    const result = plan(minutely({ overlap: 'skip' }), [queued], now, now)
    expect(result.retractThrough).toBeGreaterThanOrEqual(NOON)
    expect(instants(result)).toEqual([NOON + HOUR])
  })

  it('latest keeps nothing that is older than within', () => {
    const result = plan(minutely({ missed: { ...DEFAULT_MISSED, withinMs: 20 * SECOND } }), [], now, now)
    expect(result.ticks).toEqual([])
    expect(result.skips).toEqual([{ from: NOON + MINUTE, to: NOON + HOUR, count: 60, reason: 'missed' }])
    expect(result.nextAt).toBe(NOON + 61 * MINUTE)
  })

  it('skip keeps the newest only when it is within grace', () => {
    const skips = minutely({ missed: { ...DEFAULT_MISSED, policy: 'skip' } })
    expect(plan(skips, [], now, now).ticks).toEqual([])
    expect(instants(plan(skips, [], NOON + HOUR + 5 * SECOND, NOON + HOUR + 5 * SECOND))).toEqual([NOON + HOUR])
  })

  it('all keeps every tick, oldest first', () => {
    const result = plan(minutely({ missed: allMissed() }), [], now, now)
    expect(result.ticks).toHaveLength(60)
    expect(instants(result)[0]).toBe(NOON + MINUTE)
    expect(result.skips).toEqual([])
  })

  it('all keeps at most the newest max, inside within', () => {
    const newest = plan(minutely({ missed: allMissed({ max: 3 }) }), [], now, now)
    expect(instants(newest)).toEqual([NOON + 58 * MINUTE, NOON + 59 * MINUTE, NOON + HOUR])
    expect(newest.skips[0]).toMatchObject({ count: 57, reason: 'missed' })
    const recent = plan(minutely({ missed: allMissed({ withinMs: 90 * SECOND }) }), [], now, now)
    expect(instants(recent)).toEqual([NOON + 59 * MINUTE, NOON + HOUR])
  })

  it('continues at now, with the oldest ticks first, when one step cannot hold all', () => {
    const result = plan(minutely({ missed: allMissed() }), [], now, now, 10)
    expect(result.ticks).toHaveLength(10)
    expect(result.dueAt).toBe(now)
    expect(result.nextAt).toBe(NOON + 11 * MINUTE)
  })

  it('counts a year of seconds without enumerating it', () => {
    const every = minutely({ timeline: { every: SECOND } })
    const cron = minutely({ timeline: { cron: '* * * * * *', timezone: 'Europe/Berlin' } })
    for (const schedule of [every, cron]) {
      plan(schedule, [], NOON + YEAR, NOON + YEAR)
      const started = performance.now()
      const result = plan(schedule, [], NOON + YEAR, NOON + YEAR)
      expect(performance.now() - started).toBeLessThan(20)
      expect(result.skips[0]?.count).toBe(YEAR / SECOND - 1)
      expect(instants(result)).toEqual([NOON + YEAR])
    }
  })
})

describe('deadlines', () => {
  it('carries the instant after which it is too late to start', () => {
    const [tick] = plan(minutely({ deadlineMs: 5 * SECOND }), [], NOON + MINUTE, NOON + MINUTE).ticks
    expect(tick?.startBy).toBe(NOON + MINUTE + 5 * SECOND)
  })

  it('takes the shorter of deadline and within, and grace under skip', () => {
    const within = minutely({ deadlineMs: HOUR, missed: { ...DEFAULT_MISSED, withinMs: MINUTE } })
    expect(plan(within, [], NOON + MINUTE, NOON + MINUTE).ticks[0]?.startBy).toBe(NOON + 2 * MINUTE)
    const skip = minutely({ missed: { ...DEFAULT_MISSED, policy: 'skip' } })
    expect(plan(skip, [], NOON + MINUTE, NOON + MINUTE).ticks[0]?.startBy).toBe(NOON + MINUTE + 10 * SECOND)
  })

  it('skips a tick that is already past its deadline', () => {
    const late = minutely({ deadlineMs: 3 * SECOND })
    const result = plan(late, [], NOON + MINUTE + 4 * SECOND, NOON + MINUTE + 4 * SECOND)
    expect(result.ticks).toEqual([])
    expect(result.skips).toEqual([{ from: NOON + MINUTE, to: NOON + MINUTE, count: 1, reason: 'deadline' }])
  })
})

describe('overlap', () => {
  const now = NOON + MINUTE

  it('allow records ticks whatever is unfinished', () => {
    expect(plan(minutely(), [running], now, now).ticks[0]?.waits).toBe(false)
  })

  it('skip drops a tick while a run is unfinished', () => {
    const result = plan(minutely({ overlap: 'skip' }), [running], now, now)
    expect(result.ticks).toEqual([])
    expect(result.skips).toEqual([{ from: now, to: now, count: 1, reason: 'overlap' }])
  })

  it('queue-one lets one run wait and drops later ticks until it starts', () => {
    expect(plan(minutely({ overlap: 'queue-one' }), [running], now, now).ticks[0]?.waits).toBe(true)
    const full = plan(minutely({ overlap: 'queue-one' }), [running, { state: 'waiting', started: false }], now, now)
    expect(full.skips[0]?.reason).toBe('overlap')
  })

  it('queue-all lets all runs wait', () => {
    const result = plan(minutely({ overlap: 'queue-all' }), [running, queued], now, now)
    expect(result.ticks[0]?.waits).toBe(true)
  })

  it('cancel-running asks running runs to end, and waits for one', () => {
    const over = plan(minutely({ overlap: 'cancel-running' }), [running], now, now)
    expect(over).toMatchObject({ cancelUnfinished: true, ticks: [{ waits: true }] })
    const unstarted = plan(minutely({ overlap: 'cancel-running' }), [queued], now, now)
    expect(unstarted).toMatchObject({ cancelUnfinished: true, ticks: [{ waits: false }] })
  })

  it('cancel-running keeps only the newest of several due ticks', () => {
    const every = minutely({ timeline: { every: SECOND }, overlap: 'cancel-running', remaining: 5 })
    const result = plan(every, [], NOON + 3 * SECOND, NOON + 3 * SECOND)
    expect(instants(result)).toEqual([NOON + 3 * SECOND])
    expect(result.skips).toEqual([{ from: NOON + SECOND, to: NOON + 2 * SECOND, count: 2, reason: 'overlap' }])
    expect(result.remaining).toBe(4)
  })

  it('is not decided ahead of the tick while something is unfinished', () => {
    const ahead = NOON + MINUTE - 500
    const result = plan(minutely({ overlap: 'skip' }), [running], ahead, ahead + SECOND)
    expect(result).toEqual({
      ticks: [],
      skips: [],
      cursor: NOON,
      nextAt: NOON + MINUTE,
      dueAt: NOON + MINUTE + SECOND,
    })
    expect(instants(plan(minutely({ overlap: 'skip' }), [], ahead, ahead + SECOND))).toEqual([NOON + MINUTE])
  })
})

describe('a paused schedule', () => {
  it('skips its ticks as one range, whatever the missed policy', () => {
    const result = plan(minutely({ pausedAt: NOON + 5, missed: allMissed() }), [], NOON + HOUR, NOON + HOUR)
    expect(result.ticks).toEqual([])
    expect(result.skips).toEqual([{ from: NOON + MINUTE, to: NOON + HOUR, count: 60, reason: 'paused' }])
    expect(result.dueAt).toBeUndefined()
    expect(result.cursor).toBe(NOON + HOUR)
  })
})

// ── Properties ──────────────────────────────────────────────────────────────────────────────────────────────────────

const timelines = fc.oneof(
  fc.integer({ min: 1, max: 7_200 }).map((seconds) => ({ every: seconds * SECOND })),
  fc
    .constantFrom('* * * * *', '*/20 * * * * *', '0 9 * * 1-5', '30 2 * * *', '0 0 1 * +MON')
    .chain((cron) =>
      fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe').map((timezone) => ({ cron, timezone })),
    ),
  fc
    .uniqueArray(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 20 })
    .map((seconds) => ({ at: seconds.map((s) => NOON + s * SECOND).sort((a, b) => a - b) })),
)

const unfinishedRuns = fc.array(
  fc.record({
    state: fc.constantFrom('ready' as const, 'waiting' as const, 'running' as const),
    started: fc.boolean(),
  }),
  { maxLength: 3 },
)

function optional<Key extends string, T>(key: Key, value: fc.Arbitrary<T>): fc.Arbitrary<{ [K in Key]?: T }> {
  return fc
    .option(value, { nil: undefined })
    .map((given) => (given === undefined ? {} : { [key]: given }) as { [K in Key]?: T })
}

const missedPolicies = fc
  .tuple(
    fc.record({
      policy: fc.constantFrom('skip' as const, 'latest' as const, 'all' as const),
      max: fc.integer({ min: 1, max: 50 }),
    }),
    optional('withinMs', fc.integer({ min: 0, max: 6 * HOUR })),
  )
  .map(([policy, within]) => ({ graceMs: 10 * SECOND, ...policy, ...within }))

const schedules: fc.Arbitrary<Plannable> = fc
  .tuple(
    fc.record({
      timeline: timelines,
      overlap: fc.constantFrom('allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'),
      missed: missedPolicies,
      jitterMs: fc.constantFrom(0, 5 * SECOND),
    }),
    optional('deadlineMs', fc.integer({ min: 0, max: HOUR })),
    optional('startsAt', fc.integer({ min: NOON, max: NOON + 10 * HOUR })),
    optional('endsAt', fc.integer({ min: NOON, max: NOON + 100 * HOUR })),
    optional('remaining', fc.integer({ min: 0, max: 30 })),
    optional('pausedAt', fc.constant(NOON)),
  )
  .map((parts) => Object.assign(minutely(), ...parts) as Plannable)

/** Successive calls at later and later times, with some look-ahead. */
const calls = fc.array(
  fc.record({
    elapsed: fc.integer({ min: 0, max: 20 * HOUR }),
    ahead: fc.constantFrom(0, SECOND, MINUTE),
    unfinished: unfinishedRuns,
  }),
  { minLength: 1, maxLength: 6 },
)

describe('planning', () => {
  it('is deterministic', () => {
    fc.assert(
      fc.property(
        schedules,
        unfinishedRuns,
        fc.integer({ min: 0, max: 100 * HOUR }),
        (schedule, unfinished, elapsed) => {
          const once = plan(schedule, unfinished, NOON + elapsed, NOON + elapsed)
          expect(plan(schedule, unfinished, NOON + elapsed, NOON + elapsed)).toEqual(once)
        },
      ),
    )
  })

  it('accounts for each tick exactly once over successive calls, in order, with a cursor that only moves forward', () => {
    fc.assert(
      fc.property(schedules, calls, (start, steps) => {
        const line = scheduleTimeline(start)
        let schedule = start
        let now = NOON
        for (const { elapsed, ahead, unfinished } of steps) {
          now += elapsed
          const result = plan(schedule, unfinished, now, now + ahead, 40)
          const ticks = instants(result)
          const skipped = result.skips.reduce((sum, range) => sum + range.count, 0)
          expect(result.cursor).toBeGreaterThanOrEqual(schedule.cursor)
          expect([...ticks].sort((a, b) => a - b)).toEqual(ticks)
          expect(new Set(ticks).size).toBe(ticks.length)
          for (const tick of ticks) {
            expect(tick).toBeGreaterThan(schedule.cursor)
            expect(tick).toBeLessThanOrEqual(now + ahead)
            expect(line.next(tick - 1)).toBe(tick)
          }
          expect(ticks.length + skipped).toBe(line.count(schedule.cursor, result.cursor))
          for (const { from, to, count } of result.skips) expect(line.count(from - 1, to)).toBe(count)
          if (result.dueAt !== undefined)
            expect(result.dueAt).toBeGreaterThanOrEqual(Math.min(now, result.nextAt ?? now))
          schedule = applied(schedule, result)
        }
      }),
      { numRuns: 400 },
    )
  })

  it('leaves no due tick unplanned unless it reports that it is behind', () => {
    fc.assert(
      fc.property(
        schedules,
        unfinishedRuns,
        fc.integer({ min: 0, max: 100 * HOUR }),
        (schedule, unfinished, elapsed) => {
          const now = NOON + elapsed
          const result = plan(schedule, unfinished, now, now, 25)
          if (result.nextAt !== undefined && result.nextAt <= now) expect(result.dueAt).toBe(now)
        },
      ),
    )
  })

  it('in two steps equals planning in one under all', () => {
    const everything = schedules.map(({ deadlineMs: _, pausedAt: __, ...schedule }) => ({
      ...schedule,
      overlap: 'allow' as const,
      missed: allMissed({ max: 10_000 }),
    }))
    // The range has no more seconds than `missed.max` has ticks.
    const hours = fc.integer({ min: 0, max: 5_000_000 })
    fc.assert(
      fc.property(everything, hours, hours, (schedule, first, second) => {
        const whole = plan(schedule, [], NOON + first + second, NOON + first + second, 10_000)
        const one = plan(schedule, [], NOON + first, NOON + first, 10_000)
        const two = plan(applied(schedule, one), [], NOON + first + second, NOON + first + second, 10_000)
        expect([...one.ticks, ...two.ticks]).toEqual(whole.ticks)
        expect(two.cursor).toBe(whole.cursor)
        expect(two.nextAt).toBe(whole.nextAt)
      }),
    )
  })
})
