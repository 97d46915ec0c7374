/**
 * The operations of a stress test: all operations of a store, concurrently from several handles, on so few names that
 * they often conflict. Their answers are ignored. They must not fail, and must leave no run unfinished.
 */
import type { RunKey } from '../../src/core/runs/key.js'
import type { NewRun, Outcome } from '../../src/core/runs/run.js'
import { plan } from '../../src/core/schedules/plan.js'
import type { ScheduleDefinition } from '../../src/core/schedules/schedule.js'
import type { Settlement, Store } from '../../src/core/store.js'
import type { Random } from '../../src/testing/random.js'

const SCHEDULES = ['s1', 's2', 's3', 's4', 's5', 's6'] as const
const KEYS = ['k1', 'k2', 'k3', 'k4'] as const
const LOCKS = ['k1', 'l1', 'l2', 'l3'] as const
const JOBS = ['one', 'two'] as const
const INSTANCES = ['i1', 'i2', 'i3', 'i4', 'i5', 'i6'] as const
const DEDUPES = ['d1', 'd2', 'd3', 'd4'] as const
const OVERLAPS = ['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const
const KEEPS = ['all', 'failures', 'none'] as const
const OUTCOMES: readonly [Outcome, ...Outcome[]] = [
  { kind: 'succeeded', result: 1 },
  { kind: 'succeeded' },
  { kind: 'succeeded' },
  { kind: 'failed', error: { code: 'HANDLER', message: 'so it goes' } },
  { kind: 'retry', error: { code: 'HANDLER', message: 'again' }, delayMs: 5 },
  { kind: 'released' },
  { kind: 'cancelled' },
]
/** So short that leases expire all the time. */
const LEASE_MS = 150

/** The runs and locks that the workers know of, shared so that they act on the same ones. */
export interface Shared {
  /** The number of the last claim by any worker. */
  claim: number
  /** Attempts claimed so far: settling one twice is one of the operations. */
  readonly attempts: { readonly run: string; readonly token: number }[]
  readonly runs: string[]
  readonly leases: { readonly name: string; readonly holder: string; readonly token: number }[]
}

export function shared(): Shared {
  return { claim: 0, attempts: [], runs: [], leases: [] }
}

type Operation = (store: Store, random: Random, shared: Shared) => Promise<unknown>

/** The relative frequency of each operation. */
const OPERATIONS: Readonly<Record<string, readonly [weight: number, operation: Operation]>> = {
  claim: [20, claim],
  settle: [20, settle],
  transact: [4, transact],
  advance: [10, (store) => store.schedules.advance({ limit: 10, lookaheadMs: 100, plan })],
  enqueue: [14, enqueue],
  beat: [6, beat],
  join: [6, (store, random) => store.instances.join(instance(random.pick(INSTANCES)), LEASE_MS)],
  leave: [1, (store, random) => store.instances.leave(random.pick(INSTANCES))],
  rescue: [5, (store) => store.runs.rescue(20)],
  prune: [4, prune],
  put: [6, put],
  remove: [2, (store, random) => store.schedules.remove(some(random, SCHEDULES))],
  pause: [2, (store, random) => store.schedules.pause(random.pick(SCHEDULES), undefined)],
  resume: [2, (store, random) => store.schedules.resume(random.pick(SCHEDULES))],
  cancel: [5, onRecentRun((store, run) => store.runs.cancel(run))],
  retry: [3, onRecentRun((store, run) => store.runs.retry(run))],
  stamp: [3, stamp],
  acquire: [8, acquire],
  renew: [4, renew],
  release: [6, release],
  reset: [1, (store, random) => store.leases.reset(random.pick(LOCKS))],
}
const LOTS = Object.values(OPERATIONS).flatMap(([weight, operation]) => Array<Operation>(weight).fill(operation))

export function runRandomOperation(store: Store, random: Random, common: Shared): Promise<unknown> {
  const operation = LOTS[random.integer(0, LOTS.length - 1)]
  if (operation === undefined) throw new Error('there is no operation to do')
  return operation(store, random, common)
}

/** Lets all runs finish, and returns those that are still unfinished after the time. */
export async function finishAllRuns(store: Store, patienceMs: number): Promise<readonly string[]> {
  for (const id of SCHEDULES) await store.schedules.remove([id])
  const states = ['waiting', 'ready', 'running'] as const
  const until = performance.now() + patienceMs
  for (let number = 1; ; number += 1) {
    await store.instances.join(instance('last'), 60_000)
    const { items } = await store.runs.list({ states, limit: 100 })
    if (items.length === 0) return []
    if (performance.now() > until) return items.map((run) => JSON.stringify(run))
    await store.runs.stamp(
      items.filter(({ waitsFor }) => waitsFor === 'stamp').map(({ id }) => ({ run: id, key: undefined })),
    )
    await store.runs.rescue(100)
    const capacity = JOBS.map((name) => ({ name, limit: 100 }))
    const { runs } = await store.runs.claim({
      instance: 'last',
      claim: number,
      limit: 100,
      jobs: capacity,
      sinks: [],
      floor: 0,
    })
    await store.runs.settle(runs.map(({ id, token }) => ({ run: id, token, outcome: { kind: 'succeeded' } })))
  }
}

function instance(id: string) {
  return {
    id,
    host: 'host',
    pid: 1,
    app: 'app',
    declarations: 'hash',
    zoneData: '',
    jobs: JOBS.map((name) => ({ name })),
  }
}

function definition(random: Random): ScheduleDefinition {
  const key = random.chance(0.5) ? undefined : random.chance(0.2) ? ('unstamped' as const) : keyOf(random)
  return {
    timeline: { every: random.integer(20, 60) },
    target: { job: random.pick(JOBS) },
    payload: random.integer(0, 3),
    ...(key === undefined ? {} : { key }),
    overlap: random.pick(OVERLAPS),
    missed: { policy: random.pick(['skip', 'latest', 'all']), max: 5, graceMs: random.pick([0, 50]) },
    ...(random.chance(0.3) ? { deadlineMs: random.integer(1, 30) } : {}),
    jitterMs: 0,
    priority: random.integer(0, 1),
    keep: random.pick(KEEPS),
    onFinish: 'keep',
  }
}

function keyOf(random: Random): RunKey {
  return { name: random.pick(KEYS), limit: random.integer(1, 2), whenBusy: random.pick(['wait', 'skip']) }
}

function some<Item>(random: Random, items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, place: random.next() }))
    .sort((one, other) => one.place - other.place)
    .slice(0, random.integer(1, items.length))
    .map(({ item }) => item)
}

function put(store: Store, random: Random): Promise<unknown> {
  return store.schedules.put(some(random, SCHEDULES).map((id) => ({ id, definition: definition(random) })))
}

async function enqueue(store: Store, random: Random, { runs }: Shared): Promise<void> {
  const results = await store.runs.enqueue(Array.from({ length: random.integer(1, 6) }, () => newRun(random)))
  for (const { run } of results) remember(runs, run)
}

function newRun(random: Random): NewRun {
  const plain = random.chance(0.4)
  const ofSchedule = !plain && random.chance(0.5)
  const key = random.chance(0.5) ? keyOf(random) : random.chance(0.1) ? ('unstamped' as const) : undefined
  const backfill = ofSchedule && random.chance(0.2)
  return {
    target: { job: random.pick(JOBS) },
    origin: backfill ? 'backfill' : ofSchedule ? 'trigger' : 'enqueue',
    payload: null,
    priority: random.integer(0, 1),
    keep: random.pick(KEEPS),
    ...(ofSchedule ? { schedule: random.pick(SCHEDULES), overlap: random.pick(OVERLAPS) } : {}),
    ...(backfill ? { tick: random.integer(1, 10_000), backfill: 'b' } : {}),
    ...(key === undefined ? {} : { key }),
    ...(key === undefined || plain ? {} : { checkKey: random.chance(0.3) }),
    ...(plain || random.chance(0.5) ? {} : { dedupe: random.pick(DEDUPES), dedupeForMs: random.pick([0, 10]) }),
    ...(random.chance(0.2) ? { delayMs: random.integer(1, 20) } : {}),
  }
}

async function claim(store: Store, random: Random, common: Shared): Promise<void> {
  common.claim += 1
  const jobs = some(random, JOBS).map((name) => ({ name, limit: random.integer(1, 10) }))
  const request = {
    instance: random.pick(INSTANCES),
    claim: common.claim,
    limit: random.integer(1, 10),
    jobs,
    sinks: [],
    floor: 0,
  }
  const { runs } = await store.runs.claim(request)
  for (const { id, token } of runs) {
    // Forgets some attempts, as if the answer had been lost.
    if (random.chance(0.9)) remember(common.attempts, { run: id, token })
    remember(common.runs, id)
  }
}

function settle(store: Store, random: Random, { attempts }: Shared): Promise<unknown> {
  const settlements: Settlement[] = some(random, attempts.slice(-30))
    .slice(0, 12)
    .map((attempt) => ({ ...attempt, outcome: random.pick(OUTCOMES) }))
  return store.runs.settle(settlements)
}

/** Commits a random attempt, as a handler does by `transaction()`. The same attempt may be committed more than once. */
async function transact(store: Store, random: Random, { attempts }: Shared): Promise<void> {
  const attempt = attempts[random.integer(0, attempts.length - 1)]
  if (attempt !== undefined) await store.runs.transact?.(attempt, async () => 1)
}

function beat(store: Store, random: Random, { attempts, claim: claimsSettled }: Shared): Promise<unknown> {
  const request = { instance: random.pick(INSTANCES), leaseMs: LEASE_MS, attempts: attempts.slice(-40) }
  return store.instances.beat({ ...request, claimsSettled: Math.max(claimsSettled - random.integer(5, 50), 0) })
}

function prune(store: Store, random: Random): Promise<unknown> {
  const maxAgeMs = random.pick([0, 50, 1_000])
  return store.runs.prune({ maxAgeMs, maxRuns: random.pick([10, 1_000]), leaseAgeMs: random.pick([0, 20]), limit: 50 })
}

function stamp(store: Store, random: Random, { runs }: Shared): Promise<void> {
  const key = () => (random.chance(0.7) ? keyOf(random) : undefined)
  return store.runs.stamp(some(random, runs.slice(-30)).map((run) => ({ run, key: key() })))
}

async function acquire(store: Store, random: Random, { leases }: Shared): Promise<void> {
  const [name, holder] = [random.pick(LOCKS), random.pick(['h1', 'h2', 'h3', 'h4'])]
  const request = { name, holder, ttlMs: random.integer(5, 100), permits: random.integer(1, 2), floor: 0 }
  const result = await store.leases.acquire({ ...request, waitMs: random.pick([0, 50]) })
  if (result.acquired) remember(leases, result.lease)
}

function renew(store: Store, random: Random, { leases }: Shared): Promise<unknown> {
  return store.leases.renew(some(random, leases.slice(-10)).map((lease) => ({ ...lease, ttlMs: 50 })))
}

function release(store: Store, random: Random, { leases }: Shared): Promise<unknown> {
  const lease = leases[random.integer(0, leases.length - 1)]
  if (lease === undefined) return Promise.resolve()
  return store.leases.release({ ...lease, minHoldMs: random.pick([0, 0, 10]) })
}

function onRecentRun(operation: (store: Store, run: string) => Promise<unknown>): Operation {
  return async (store, random, { runs }) => {
    const run = runs[random.integer(0, runs.length - 1)]
    if (run !== undefined) await operation(store, run)
  }
}

function remember<Item>(list: Item[], item: Item): void {
  list.push(item)
  if (list.length > 100) list.shift()
}
