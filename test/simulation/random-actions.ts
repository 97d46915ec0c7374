/** Random actions on the cluster while it runs: by users, by operators, and faults of processes and the network. */
import type { Belfry } from '../../src/belfry.js'
import type { Random } from '../../src/testing/random.js'
import type { SimulatedCluster } from './cluster.js'
import type { InstanceSlot } from './instance-slot.js'
import { randomPayload, randomSchedule, randomTimeline } from './random-schedule.js'

type Action = (cluster: SimulatedCluster) => void

const ACTIONS: readonly (readonly [weight: number, Action])[] = [
  [10, enqueue],
  [4, trigger],
  [3, changeTimeline],
  [5, changeOtherFields],
  [3, putRandomSchedule],
  [3, pause],
  [5, resume],
  [2, remove],
  [1, backfill],
  [1, freeze],
  [2, cancelRun],
  [1, retryRun],
  [3, crash],
  [3, hold],
  [2, stop],
  [2, cutOff],
  [1, outage],
]

const TOTAL = ACTIONS.reduce((sum, [weight]) => sum + weight, 0)

export function doRandomAction(cluster: SimulatedCluster): void {
  let left = cluster.random.next() * TOTAL
  for (const [weight, action] of ACTIONS) {
    left -= weight
    if (left >= 0) continue
    action(cluster)
    return
  }
}

export function scheduleId(random: Random, { schedules }: { readonly schedules: number }): string {
  return `s${random.integer(1, schedules)}`
}

/** A running instance with faults, or an operator without them. */
function anyCaller({ random, slots, operator }: SimulatedCluster): Belfry {
  const up = slots.flatMap(({ belfry }) => (belfry === undefined ? [] : [belfry]))
  const [first, ...rest] = up
  return first === undefined || random.chance(0.4) ? operator : random.pick([first, ...rest])
}

function anySlot({ random, slots }: SimulatedCluster): InstanceSlot | undefined {
  return slots[random.integer(0, slots.length - 1)]
}

function enqueue(cluster: SimulatedCluster): void {
  const { random, settings, slots, operatorJobs } = cluster
  const { name } = random.pick(settings.jobs)
  const slot = slots[random.integer(0, slots.length - 1)]
  const job = (random.chance(0.5) && slot?.belfry !== undefined ? slot.jobs : operatorJobs).get(name)
  const payload = randomPayload(random)
  const options = {
    ...(random.chance(0.3) ? { in: random.integer(0, 20_000) } : {}),
    ...(random.chance(0.4) ? { key: `once-${random.integer(1, 3)}` } : {}),
    ...(random.chance(0.2) ? { priority: random.integer(-2, 2) } : {}),
  }
  const times = random.chance(0.2) ? random.integer(2, 6) : 1
  for (let count = 0; count < times; count += 1) {
    cluster.attempt(`enqueue ${name}`, async () => job?.enqueue(payload, options))
  }
}

function trigger(cluster: SimulatedCluster): void {
  const { random, settings } = cluster
  const id = scheduleId(random, settings)
  const overlap = random.pick(['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const)
  cluster.attempt(`trigger ${id}`, () => anyCaller(cluster).schedules.trigger(id, { overlap }))
}

export function putRandomSchedule(cluster: SimulatedCluster, id = scheduleId(cluster.random, cluster.settings)): void {
  const { random, settings, clock, operator, codelessOperator } = cluster
  const input = randomSchedule(random, settings, clock.now(), true)
  const who = random.chance(0.2) ? codelessOperator : random.chance(0.5) ? operator : anyCaller(cluster)
  cluster.attempt(`put ${id}`, () => who.schedules.put(id, input))
}

/** Puts an existing schedule with one change. */
function change(cluster: SimulatedCluster, what: (random: Random, now: number) => object): void {
  const { random, settings, store, clock, operator } = cluster
  const id = scheduleId(random, settings)
  cluster.attempt(`change ${id}`, async () => {
    const now = clock.now()
    const definition = (await store.schedules.get(id))?.definition
    if (definition === undefined || !('job' in definition.target)) return
    const { timeline, startsAt, endsAt, target, payload, overlap, jitterMs, priority, keep, onFinish, times } =
      definition
    const { policy, withinMs } = definition.missed
    const changed = what(random, now)
    const at = 'at' in timeline ? { at: timeline.at.map((instant) => new Date(instant)) } : {}
    const bounds = { startsAt: startsAt && new Date(startsAt), endsAt: endsAt && new Date(endsAt) }
    const line = 'timeline' in changed ? {} : { ...timeline, ...at, ...bounds }
    const input = {
      ...{ job: target.job, payload, overlap, jitter: jitterMs, priority, keep, onFinish, times, ...line },
      missed: policy === 'skip' || withinMs === undefined ? { policy } : { policy, within: withinMs },
      ...changed,
    }
    const given = Object.entries(input).filter(([field, value]) => value !== undefined && field !== 'timeline')
    await operator.schedules.put(id, Object.fromEntries(given))
  })
}

function changeTimeline(cluster: SimulatedCluster): void {
  const job = cluster.random.pick(cluster.settings.jobs)
  change(cluster, (random, now) => ({ timeline: 'new', job: job.name, ...randomTimeline(random, job, now, false) }))
}

function changeOtherFields(cluster: SimulatedCluster): void {
  change(cluster, (random) =>
    random.pick<object>([
      { payload: randomPayload(random) },
      { overlap: random.pick(['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const) },
      { jitter: random.integer(0, 3_000) },
      { missed: random.pick(['skip', 'latest', 'all'] as const) },
      { times: random.integer(1, 10) },
      { deadline: random.integer(500, 20_000) },
    ]),
  )
}

function pause(cluster: SimulatedCluster): void {
  const id = scheduleId(cluster.random, cluster.settings)
  cluster.attempt(`pause ${id}`, () => anyCaller(cluster).schedules.pause(id, 'simulated'))
}

function resume(cluster: SimulatedCluster): void {
  const id = scheduleId(cluster.random, cluster.settings)
  cluster.attempt(`resume ${id}`, () => anyCaller(cluster).schedules.resume(id))
}

function remove(cluster: SimulatedCluster): void {
  const { random, settings, clock } = cluster
  const id = scheduleId(random, settings)
  cluster.attempt(`remove ${id}`, () => anyCaller(cluster).schedules.remove(id))
  if (random.chance(0.7)) clock.after(random.integer(0, 3_000), () => putRandomSchedule(cluster, id))
}

function backfill(cluster: SimulatedCluster): void {
  const { random, settings, clock } = cluster
  const id = scheduleId(random, settings)
  const from = new Date(clock.now() - random.integer(1_000, 8_000))
  cluster.attempt(`backfill ${id}`, () =>
    anyCaller(cluster).schedules.backfill(id, { from, to: new Date(clock.now()) }),
  )
}

function freeze(cluster: SimulatedCluster): void {
  const { random, clock, operator } = cluster
  cluster.attempt('freeze', () => operator.freeze())
  clock.after(random.integer(500, 15_000), () => cluster.attempt('thaw', () => operator.thaw()))
}

function anyRun(cluster: SimulatedCluster, work: (belfry: Belfry, run: string) => Promise<unknown>): void {
  const { random, store } = cluster
  const who = anyCaller(cluster)
  cluster.attempt('look for a run', async () => {
    const { items } = await store.runs.list({ limit: 20 })
    const run = items[random.integer(0, items.length - 1)]
    if (run !== undefined) await work(who, run.id)
  })
}

function cancelRun(cluster: SimulatedCluster): void {
  anyRun(cluster, (belfry, run) => belfry.runs.cancel(run))
}

function retryRun(cluster: SimulatedCluster): void {
  anyRun(cluster, (belfry, run) => belfry.runs.retry(run))
}

function crash(cluster: SimulatedCluster): void {
  const slot = anySlot(cluster)
  slot?.crash()
  reopen(cluster, slot)
}

function stop(cluster: SimulatedCluster): void {
  const { random } = cluster
  const slot = anySlot(cluster)
  slot?.stop(random.pick([0, 1_000, 10_000]))
  reopen(cluster, slot)
}

function reopen({ random, clock, settings }: SimulatedCluster, slot: InstanceSlot | undefined): void {
  clock.after(random.integer(100, settings.leaseMs * 3), () => slot?.open())
}

function hold(cluster: SimulatedCluster): void {
  const { random, clock, settings } = cluster
  const slot = anySlot(cluster)
  slot?.hold()
  clock.after(random.integer(100, settings.leaseMs * 3), () => slot?.resume())
}

function cutOff(cluster: SimulatedCluster): void {
  const { random, clock, settings, chronicle } = cluster
  const slot = anySlot(cluster)
  if (slot === undefined) return
  slot.cutOffUntil = clock.now() + random.integer(100, settings.leaseMs * 2)
  chronicle.note(`${slot.name} is cut off until ${new Date(slot.cutOffUntil).toISOString()}`)
}

function outage(cluster: SimulatedCluster): void {
  const { random, clock, chronicle } = cluster
  cluster.outageUntil = clock.now() + random.integer(100, 30_000)
  chronicle.note(`the store is out of reach until ${new Date(cluster.outageUntil).toISOString()}`)
}
