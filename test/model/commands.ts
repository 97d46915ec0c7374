/** Random operations. Each runs on both stores and compares their answers. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { parseSchedule, type ScheduleFields } from '../../src/api/schedules/schedule-input.js'
import type { RunKey } from '../../src/core/runs/key.js'
import type { NewRun, Outcome } from '../../src/core/runs/run.js'
import { plan } from '../../src/core/schedules/plan.js'
import { IDS, inOrder, lockToken, type Pair, plain, plainRun, plainSchedule, type Side } from './pair.js'

export interface TestClock {
  elapse(ms: number): Promise<void>
}

type Command = fc.AsyncCommand<Pair, TestClock>

/** Runs a command on one side; both sides must return the same. */
type Operation = (of: Side, pair: Pair) => Promise<unknown>

const JOBS = ['j1', 'j2']
const INSTANCES = ['i1', 'i2', 'i3']
const LOCKS = ['lock', 'key1', 'pair']
/**
 * These names share a shard in a sharded store. With a key in another shard, a run takes the key in two steps, but in
 * the model in one, so their answers would differ. `test/stores/redis-shards.test.ts` tests such keys.
 */
const [FIRST, SECOND] = ['s1', 's3']
const [KEY, DEDUPE] = ['key1', 'd23']

/** The values that differ in stories for a sharded store. */
export interface StoryOptions {
  readonly limits: readonly number[]
  readonly stamp: RunKey | undefined
}

export const UNSHARDED: StoryOptions = { limits: [1, 2, 10], stamp: { name: KEY, limit: 1, whenBusy: 'wait' } }
/**
 * Limits: with a low limit, a sharded store may claim fewer runs than are due, because the first candidates of a shard
 * may turn out not to be startable. Stamps: a run that waits for its key may be in another shard than that key.
 */
export const SHARDED: StoryOptions = { limits: [100], stamp: undefined }
const LEASE_MS = 10_000
/** All users of a lock must pass the same number of permits. */
const PERMITS: Readonly<Record<string, number>> = { pair: 2 }

function command(name: string, operation: Operation, after?: (pair: Pair) => void): Command {
  return {
    check: () => true,
    toString: () => name,
    async run(pair) {
      const expected = plain(await operation(pair.model, pair))
      const actual = plain(await operation(pair.real, pair))
      expect(actual, name).toEqual(expected)
      after?.(pair)
    },
  }
}

function elapse(ms: number): Command {
  return { check: () => true, toString: () => `elapse ${ms}`, run: (_, testClock) => testClock.elapse(ms) }
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

function put(id: string, input: ScheduleFields): Command {
  const definition = parseSchedule(id, input, 10_000)
  return command(`put ${id} ${JSON.stringify(input)}`, async (of) => {
    const [result] = await of.store.schedules.put([{ id, definition }])
    const schedule = result?.schedule
    return { ...result, schedule: schedule === undefined ? null : plainSchedule(of, schedule) }
  })
}

async function seen(of: Side, change: Promise<Parameters<typeof plainSchedule>[1] | undefined>) {
  const schedule = await change
  return schedule === undefined ? null : plainSchedule(of, schedule)
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function enqueue(run: NewRun): Command {
  return command(`enqueue ${JSON.stringify(run)}`, async (of) => {
    const [result] = await of.store.runs.enqueue([run])
    return { outcome: result?.outcome, run: result === undefined ? null : of.runs.numberOf(result.run) }
  })
}

function claim(instance: string, limit: number): Command {
  const before = (pair: Pair) => {
    pair.claims.set(instance, (pair.claims.get(instance) ?? 0) + 1)
  }
  return {
    check: () => true,
    toString: () => `claim ${instance} ${limit}`,
    async run(pair) {
      before(pair)
      const [expected, actual] = await Promise.all([claimOn(pair.model, pair), claimOn(pair.real, pair)])
      expect(plain(actual), `claim ${instance} ${limit}`).toEqual(plain(expected))
      for (const { run, token } of expected.attempts) pair.claimed.push({ run, token, instance })
    },
  }

  async function claimOn(of: Side, pair: Pair) {
    const jobs = JOBS.map((name) => ({ name, limit }))
    const request = { instance, claim: pair.claims.get(instance) ?? 0, limit, jobs, sinks: [], floor: 0 }
    const result = await of.store.runs.claim(request)
    const { nextReadyAt } = result
    const runs = inOrder(of, result.runs)
    return {
      runs: runs.map((run) => plainRun(of, run)),
      nextReadyAt,
      attempts: runs.map((run) => ({ run: of.runs.numberOf(run.id), token: of.tokens.numberOf(run.token) })),
    }
  }
}

function settle(pick: number, outcome: Outcome): Command {
  return command(`settle #${pick} ${outcome.kind}`, async (of, { claimed }) => {
    const attempt = claimed[pick % Math.max(claimed.length, 1)]
    if (attempt === undefined) return null
    const run = of.runs.nameOf(attempt.run) ?? ''
    return of.store.runs.settle([{ run, token: of.tokens.nameOf(attempt.token) ?? 0, outcome }])
  })
}

function onRun(name: string, pick: number, operation: (of: Side, run: string) => Promise<unknown>): Command {
  return command(`${name} run #${pick}`, async (of, { model }) => {
    const id = of.runs.nameOf(pick % Math.max(model.runs.size, 1))
    return id === undefined ? null : operation(of, id)
  })
}

// ── Instances and leases ────────────────────────────────────────────────────────────────────────────────────────────

function join(id: string): Command {
  const info = { id, host: 'h', pid: 1, zoneData: 'z', jobs: JOBS.map((name) => ({ name })) }
  return command(`join ${id}`, async (of) => {
    await of.store.instances.join(info, LEASE_MS)
  })
}

/** A heartbeat that lists all runs that the instance claimed, or none: then the store makes the runs ready again. */
function beat(instance: string, listsAll: boolean): Command {
  return command(`beat ${instance} ${listsAll ? 'with all' : 'with nothing'}`, async (of, { claimed, claims }) => {
    const own = listsAll ? claimed.filter((attempt) => attempt.instance === instance) : []
    const attempts = own.map(({ run, token }) => ({
      run: of.runs.nameOf(run) ?? '',
      token: of.tokens.nameOf(token) ?? 0,
    }))
    const request = { instance, leaseMs: LEASE_MS, attempts, claimsSettled: claims.get(instance) ?? 0 }
    const { alive, lost, cancel } = await of.store.instances.beat(request)
    const numbers = (runs: readonly string[]) => [...new Set(runs.map((run) => of.runs.numberOf(run)))].sort()
    return { alive, lost: numbers(lost), cancel: numbers(cancel) }
  })
}

function acquire(name: string, holder: string, permits: number, waitMs: number | undefined): Command {
  return command(`acquire ${name} for ${holder} of ${permits}${waitMs === undefined ? '' : ' or wait'}`, async (of) => {
    const wait = waitMs === undefined ? {} : { waitMs }
    const result = await of.store.leases.acquire({ name, holder, ttlMs: 5_000, permits, floor: 0, ...wait })
    if (!result.acquired) return { acquired: false, until: result.until }
    return { ...result.lease, token: lockToken(of, name, result.lease.token) }
  })
}

function renew(name: string, holder: string): Command {
  return command(`renew ${name} for ${holder}`, async (of) => {
    const held = (await of.store.leases.inspect(name)).find((lease) => lease.holder === holder)
    const [lease] = await of.store.leases.renew([{ name, holder, token: held?.token ?? 1, ttlMs: 5_000 }])
    return lease === undefined ? null : lease.expiresAt
  })
}

// ── What may happen ─────────────────────────────────────────────────────────────────────────────────────────────────

const inputs: fc.Arbitrary<ScheduleFields> = fc
  .tuple(
    fc.constantFrom({ every: '2s' }, { every: '5s' }, { cron: '*/3 * * * * *' }),
    fc.record({
      job: fc.constantFrom(...JOBS),
      payload: fc.constantFrom(null, { a: 1 }),
      overlap: fc.constantFrom('allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'),
      missed: fc.constantFrom('skip', 'latest', 'all'),
      keep: fc.constantFrom('all', 'failures', 'none'),
    }),
    fc.constantFrom({}, { deadline: '4s' }, { times: 3 }, { jitter: '2s' }, { backlog: 'keep' } as const),
  )
  .map(([timeline, fields, more]) => ({ ...timeline, ...fields, ...more }) as ScheduleFields)

const newRuns: fc.Arbitrary<NewRun> = fc
  .tuple(
    fc.record({
      target: fc.constantFrom(...JOBS).map((job) => ({ job })),
      payload: fc.constant(null),
      priority: fc.constantFrom(0, 0, 5),
      keep: fc.constantFrom('all' as const, 'failures' as const, 'none' as const),
    }),
    fc.constantFrom({}, { delayMs: 3_000 }),
    fc.constantFrom<Partial<NewRun>>(
      {},
      { key: { name: KEY, limit: 1, whenBusy: 'skip' } },
      { key: { name: KEY, limit: 1, whenBusy: 'skip' }, checkKey: true },
      { key: { name: KEY, limit: 2, whenBusy: 'wait' } },
      { key: 'unstamped' },
    ),
    fc.constantFrom({}, { dedupe: DEDUPE }, { dedupe: DEDUPE, dedupeForMs: 8_000 }),
    fc.constantFrom<Partial<NewRun>>(
      {},
      {},
      { schedule: FIRST, origin: 'trigger', tick: 1 },
      { schedule: FIRST, origin: 'trigger', tick: 2, overlap: 'queue-all' },
      { schedule: SECOND, origin: 'backfill', tick: 1_000, backfill: 'b', overlap: 'queue-all' },
    ),
  )
  .map(
    ([fields, delay, key, dedupe, origin]) =>
      // Only a run without a schedule gets a dedupe key, as in the public API.
      ({
        origin: 'enqueue',
        ...fields,
        ...delay,
        ...key,
        ...('schedule' in origin ? {} : dedupe),
        ...origin,
      }) as NewRun,
  )

const outcomes: fc.Arbitrary<Outcome> = fc.constantFrom<Outcome>(
  { kind: 'succeeded', result: { ok: true } },
  { kind: 'succeeded' },
  { kind: 'failed', error: { message: 'no' } },
  { kind: 'retry', error: { message: 'again' }, delayMs: 2_000 },
  { kind: 'released' },
  { kind: 'cancelled' },
)

const instances = fc.constantFrom(...INSTANCES)
const ids = fc.constantFrom(...IDS)
const picks = fc.nat(30)
const locks = fc.tuple(fc.constantFrom(...LOCKS), fc.constantFrom('h1', 'h2', 'h3'))

export const commandsFor = ({ limits, stamp }: StoryOptions): fc.Arbitrary<Command>[] => [
  fc.tuple(ids, inputs).map(([id, input]) => put(id, input)),
  ids.map((id) => command(`remove ${id}`, (of) => of.store.schedules.remove([id]))),
  ids.map((id) => command(`pause ${id}`, (of) => seen(of, of.store.schedules.pause(id, 'note')))),
  ids.map((id) => command(`resume ${id}`, (of) => seen(of, of.store.schedules.resume(id)))),
  fc
    .constantFrom(0, 1_000, 3_000)
    .map((lookaheadMs) =>
      command(`advance ${lookaheadMs}`, (of) => of.store.schedules.advance({ limit: 10, lookaheadMs, plan })),
    ),
  newRuns.map(enqueue),
  fc.tuple(instances, fc.constantFrom(...limits)).map(([instance, limit]) => claim(instance, limit)),
  fc.tuple(picks, outcomes).map(([pick, outcome]) => settle(pick, outcome)),
  picks.map((pick) => onRun('cancel', pick, (of, run) => of.store.runs.cancel(run))),
  picks.map((pick) => onRun('retry', pick, (of, run) => of.store.runs.retry(run))),
  picks.map((pick) => onRun('stamp', pick, (of, run) => of.store.runs.stamp([{ run, key: stamp }]))),
  fc.constant(command('rescue', (of) => of.store.runs.rescue(100))),
  fc
    .constantFrom(0, 20_000)
    .map((maxAgeMs) =>
      command(`prune ${maxAgeMs}`, (of) =>
        of.store.runs.prune({ maxAgeMs, maxRuns: 10, leaseAgeMs: 20_000, limit: 100 }).then(() => null),
      ),
    ),
  fc.constantFrom(...LOCKS).map((key) => command(`available ${key}`, (of) => of.store.runs.available(key, 1))),
  instances.map(join),
  fc.tuple(instances, fc.boolean()).map(([instance, all]) => beat(instance, all)),
  instances.map((id) => command(`leave ${id}`, (of) => of.store.instances.leave(id))),
  fc
    .tuple(locks, fc.constantFrom(undefined, 3_000, 8_000))
    .map(([[name, holder], waitMs]) => acquire(name, holder, PERMITS[name] ?? 1, waitMs)),
  locks.map(([name, holder]) => renew(name, holder)),
  fc
    .tuple(locks, fc.constantFrom({}, { minHoldMs: 4_000 }))
    .map(([[name, holder], hold]) =>
      command(`release ${name} by ${holder}`, (of) => of.store.leases.release({ name, holder, ...hold })),
    ),
  fc.constantFrom(...LOCKS).map((name) => command(`reset ${name}`, (of) => of.store.leases.reset(name))),
  fc.constant(command('freeze', (of) => of.store.freeze('ice'))),
  fc.constant(command('thaw', (of) => of.store.thaw())),
  fc.constantFrom(500, 1_000, 3_000, 12_000, 30_000).map(elapse),
]
