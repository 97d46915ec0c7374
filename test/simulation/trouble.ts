/** Random actions on the cluster while it runs: by users, by operators, and faults of processes and the network. */
import type { Belfry } from '../../src/belfry.js'
import type { Random } from '../../src/testing/random.js'
import { randomPayload, randomSchedule, randomTimeline } from './random-schedule.js'
import type { Seat } from './seat.js'
import type { World } from './world.js'

type Action = (world: World) => void

const ACTIONS: readonly (readonly [weight: number, Action])[] = [
  [10, enqueue],
  [4, trigger],
  [3, changeTimeline],
  [5, changeRest],
  [3, putAnew],
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

/** Performs one random action. */
export function makeTrouble(world: World): void {
  let left = world.random.next() * TOTAL
  for (const [weight, action] of ACTIONS) {
    left -= weight
    if (left >= 0) continue
    action(world)
    return
  }
}

export function scheduleId(random: Random, { schedules }: { readonly schedules: number }): string {
  return `s${random.integer(1, schedules)}`
}

/** A running instance with faults, or an operator without them. */
function anyone({ random, seats, operator }: World): Belfry {
  const up = seats.flatMap(({ belfry }) => (belfry === undefined ? [] : [belfry]))
  const [first, ...rest] = up
  return first === undefined || random.chance(0.4) ? operator : random.pick([first, ...rest])
}

function anySeat({ random, seats }: World): Seat | undefined {
  return seats[random.integer(0, seats.length - 1)]
}

function enqueue(world: World): void {
  const { random, settings, seats, operatorJobs } = world
  const { name } = random.pick(settings.jobs)
  const seat = seats[random.integer(0, seats.length - 1)]
  const job = (random.chance(0.5) && seat?.belfry !== undefined ? seat.jobs : operatorJobs).get(name)
  const payload = randomPayload(random)
  const options = {
    ...(random.chance(0.3) ? { in: random.integer(0, 20_000) } : {}),
    ...(random.chance(0.4) ? { key: `once-${random.integer(1, 3)}` } : {}),
    ...(random.chance(0.2) ? { priority: random.integer(-2, 2) } : {}),
  }
  const times = random.chance(0.2) ? random.integer(2, 6) : 1
  for (let count = 0; count < times; count += 1) {
    world.attempt(`enqueue ${name}`, async () => job?.enqueue(payload, options))
  }
}

function trigger(world: World): void {
  const { random, settings } = world
  const id = scheduleId(random, settings)
  const overlap = random.pick(['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const)
  world.attempt(`trigger ${id}`, () => anyone(world).schedules.trigger(id, { overlap }))
}

export function putAnew(world: World, id = scheduleId(world.random, world.settings)): void {
  const { random, settings, clock, operator, stranger } = world
  const input = randomSchedule(random, settings, clock.now(), true)
  const who = random.chance(0.2) ? stranger : random.chance(0.5) ? operator : anyone(world)
  world.attempt(`put ${id}`, () => who.schedules.put(id, input))
}

/** Puts an existing schedule with one change. */
function change(world: World, what: (random: Random, now: number) => object): void {
  const { random, settings, store, clock, operator } = world
  const id = scheduleId(random, settings)
  world.attempt(`change ${id}`, async () => {
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

function changeTimeline(world: World): void {
  const job = world.random.pick(world.settings.jobs)
  change(world, (random, now) => ({ timeline: 'new', job: job.name, ...randomTimeline(random, job, now, false) }))
}

function changeRest(world: World): void {
  change(world, (random) =>
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

function pause(world: World): void {
  const id = scheduleId(world.random, world.settings)
  world.attempt(`pause ${id}`, () => anyone(world).schedules.pause(id, 'simulated'))
}

function resume(world: World): void {
  const id = scheduleId(world.random, world.settings)
  world.attempt(`resume ${id}`, () => anyone(world).schedules.resume(id))
}

function remove(world: World): void {
  const { random, settings, clock } = world
  const id = scheduleId(random, settings)
  world.attempt(`remove ${id}`, () => anyone(world).schedules.remove(id))
  if (random.chance(0.7)) clock.after(random.integer(0, 3_000), () => putAnew(world, id))
}

function backfill(world: World): void {
  const { random, settings, clock } = world
  const id = scheduleId(random, settings)
  const from = new Date(clock.now() - random.integer(1_000, 8_000))
  world.attempt(`backfill ${id}`, () => anyone(world).schedules.backfill(id, { from, to: new Date(clock.now()) }))
}

function freeze(world: World): void {
  const { random, clock, operator } = world
  world.attempt('freeze', () => operator.freeze())
  clock.after(random.integer(500, 15_000), () => world.attempt('thaw', () => operator.thaw()))
}

function anyRun(world: World, work: (belfry: Belfry, run: string) => Promise<unknown>): void {
  const { random, store } = world
  const who = anyone(world)
  world.attempt('look for a run', async () => {
    const { items } = await store.runs.list({ limit: 20 })
    const run = items[random.integer(0, items.length - 1)]
    if (run !== undefined) await work(who, run.id)
  })
}

function cancelRun(world: World): void {
  anyRun(world, (belfry, run) => belfry.runs.cancel(run))
}

function retryRun(world: World): void {
  anyRun(world, (belfry, run) => belfry.runs.retry(run))
}

function crash(world: World): void {
  const seat = anySeat(world)
  seat?.crash()
  reopen(world, seat)
}

function stop(world: World): void {
  const { random } = world
  const seat = anySeat(world)
  seat?.stop(random.pick([0, 1_000, 10_000]))
  reopen(world, seat)
}

function reopen({ random, clock, settings }: World, seat: Seat | undefined): void {
  clock.after(random.integer(100, settings.leaseMs * 3), () => seat?.open())
}

function hold(world: World): void {
  const { random, clock, settings } = world
  const seat = anySeat(world)
  seat?.hold()
  clock.after(random.integer(100, settings.leaseMs * 3), () => seat?.resume())
}

function cutOff(world: World): void {
  const { random, clock, settings, chronicle } = world
  const seat = anySeat(world)
  if (seat === undefined) return
  seat.cutOffUntil = clock.now() + random.integer(100, settings.leaseMs * 2)
  chronicle.note(`${seat.name} is cut off until ${new Date(seat.cutOffUntil).toISOString()}`)
}

function outage(world: World): void {
  const { random, clock, chronicle } = world
  world.outageUntil = clock.now() + random.integer(100, 30_000)
  chronicle.note(`the store is out of reach until ${new Date(world.outageUntil).toISOString()}`)
}
