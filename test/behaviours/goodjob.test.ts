/** Behaviours of GoodJob's cron: the recording itself decides, and its decision outlives the history. */
import { expect } from 'vitest'
import type { Belfry } from '../../src/belfry.js'
import { type Plan, plan } from '../../src/core/plan.js'
import { isFinished } from '../../src/core/run.js'
import type { AdvanceResult, Planner, Store } from '../../src/core/store.js'
import { behaviours, type InstanceOptions, type World } from './world.js'

const HOUR_MS = 3_600_000

behaviours("GoodJob's cron", (behaviour) => {
  behaviour('G1', 'N instances that reach the same tick at the same moment record exactly one run.', async (world) => {
    const { instances, fired } = await startChimers(world, 5)
    const { anchor } = await instances[0].schedules.put('bell', { every: '1s', job: 'chime' })
    await world.until(() => fired.length >= 4, 'four ticks')
    const ticks = await recordedTicks(world, 'bell')
    expect(ticks).toEqual(ticksAfter(anchor, 1_000, ticks.length))
    expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
  })

  behaviour(
    'G1',
    'N instances that reach the same tick at the same moment record exactly one run. (eight recorders in one moment)',
    async (world) => {
      const recorders = await openHandles(world, 8)
      const { anchor } = await putByHand(world, 'bell')
      for (let number = 1; number <= 3; number += 1) {
        await world.until(async () => (await world.now()) >= anchor + number * 1_000, `tick ${number}`)
        const results = await advanceAll(recorders, { lookaheadMs: 0, planner: plan })
        expect(sum(results.map(({ recorded }) => recorded))).toBe(1)
        expect(await recordedTicks(world, 'bell')).toEqual(ticksAfter(anchor, 1_000, number))
      }
    },
  )

  behaviour(
    'G2',
    "The dedupe key is (schedule, nominal tick time), enforced by the store's own unique constraint, not by a lock or a leader.",
    async (world) => {
      const first = new Date((await world.now()) + HOUR_MS)
      const second = new Date((await world.now()) + 2 * HOUR_MS)
      await putByHand(world, 'bell', { at: [first, second] })
      await putByHand(world, 'gong', { at: [first] })
      const heldUp = replaying(1.5 * HOUR_MS)
      const taken = await world.store.schedules.advance({ limit: 10, lookaheadMs: 1.5 * HOUR_MS, plan: heldUp })
      expect(taken.recorded).toBe(2)
      const again = await world.store.schedules.advance({ limit: 10, lookaheadMs: 2.5 * HOUR_MS, plan: heldUp })
      expect(again).toMatchObject({ schedules: 1, recorded: 0 })
      expect(await recordedTicks(world, 'bell')).toEqual([first.getTime()])
      expect(await recordedTicks(world, 'gong')).toEqual([first.getTime()])
      await world.store.schedules.advance({ limit: 10, lookaheadMs: 2.5 * HOUR_MS, plan })
      expect(await recordedTicks(world, 'bell')).toEqual([first.getTime(), second.getTime()])
    },
  )

  behaviour(
    'G3',
    'Losing that race is an ordinary outcome: no exception, no error or warning in the log.',
    async (world) => {
      const { instances, fired } = await startChimers(world, 5)
      for (let bell = 0; bell < 5; bell += 1) {
        await instances[0].schedules.put(`bell/${bell}`, { every: '1s', job: 'chime' })
      }
      await world.until(() => fired.length >= 15, 'three ticks of five bells')
      const complaints = instances.flatMap((belfry) =>
        world.logs(belfry).filter(({ level }) => level === 'warn' || level === 'error'),
      )
      expect(complaints).toEqual([])
    },
  )

  behaviour(
    'G3',
    'Losing that race is an ordinary outcome: no exception, no error or warning in the log. (the answer to the loser)',
    async (world) => {
      const recorders = await openHandles(world, 5)
      await putByHand(world, 'bell', { every: '1h' })
      const results = await advanceAll(recorders, { lookaheadMs: 2.5 * HOUR_MS, planner: replaying(1.5 * HOUR_MS) })
      expect(results.map(({ recorded }) => recorded).sort()).toEqual([0, 0, 0, 0, 1])
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. Row locks only share out a batch; with them switched off G1 still holds (tested).',
    async (world) => {
      const recorders = await openHandles(world, 5)
      const { anchor } = await putByHand(world, 'bell', { every: '1h' })
      for (let number = 1; number <= 3; number += 1) {
        // All recorders read the schedule, and all plan the same next tick, again after each recording.
        const planner = replaying((number + 0.5) * HOUR_MS)
        await advanceAll(recorders, { lookaheadMs: (number + 1.5) * HOUR_MS, planner })
        expect(await recordedTicks(world, 'bell')).toEqual(ticksAfter(anchor, HOUR_MS, number))
      }
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. (held up for two ticks)',
    async (world) => {
      const { anchor } = await putByHand(world, 'bell', { every: '1h' })
      const heldUp = replaying(1.5 * HOUR_MS)
      const advance = (hours: number, planner: Planner) =>
        world.store.schedules.advance({ limit: 10, lookaheadMs: hours * HOUR_MS, plan: planner })
      await advance(1.5, heldUp)
      await advance(2.5, plan)
      const late = await advance(3.5, heldUp)
      expect(late.recorded).toBe(0)
      expect((await world.store.schedules.get('bell'))?.cursor).toBe(anchor + 2 * HOUR_MS)
      await advance(3.5, plan)
      expect(await recordedTicks(world, 'bell')).toEqual(ticksAfter(anchor, HOUR_MS, 3))
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. (what a recorder asks of the store)',
    async (world) => {
      const asked = new Set<string>()
      const recorder = await world.instance({ roles: ['tick'], wrap: (store) => listening(store, asked) })
      await recorder.start()
      await putByHand(world, 'bell')
      await world.until(async () => (await recordedTicks(world, 'bell')).length >= 3, 'three ticks')
      const decides = [...asked].filter((call) => /^leases\.|^runs\.(get|list|available)$|^schedules\.get$/.test(call))
      expect(asked).toContain('schedules.advance')
      expect(decides).toEqual([])
    },
  )

  behaviour('G5', 'The user configures nothing beyond the schedule to get this.', async (world) => {
    const fired: number[] = []
    const instances = await Promise.all(
      [1, 2, 3].map(async () => {
        const belfry = await world.instance()
        belfry.job('chime', { run: ({ tick }) => void fired.push(tick.getTime()) })
        belfry.schedule('bell', { every: '1s', job: 'chime' })
        return belfry
      }),
    )
    await Promise.all(instances.map((belfry) => belfry.start()))
    const anchor = (await world.store.schedules.get('bell'))?.anchor ?? 0
    await world.until(() => fired.length >= 3, 'three ticks')
    expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    expect((await world.store.leases.list({ limit: 10 })).items).toEqual([])
  })

  behaviour(
    'G6',
    'A late or clock-skewed instance cannot record a tick again after its run has finished and been pruned (a durable cursor per schedule outlives history).',
    async (world) => {
      const { instances, fired } = await startChimers(world, 2)
      const [punctual, sleeper] = instances
      const at = new Date((await world.now()) + 1_500)
      await punctual.schedules.put('bell', { at: [at, new Date(at.getTime() + HOUR_MS)], job: 'chime' })
      world.hold(sleeper)
      await world.until(() => finished(world, 'bell', 1), 'the tick to have run')
      await pruneAll(world)
      expect(await world.runs({ schedule: 'bell' })).toEqual([])
      world.resume(sleeper)
      await startChimers(world, 1, { skewMs: -600_000, fired })
      await startChimers(world, 1, { skewMs: 600_000, fired })
      await world.elapse(1_500)
      expect(fired).toEqual([at.getTime()])
      expect(await world.runs({ schedule: 'bell' })).toEqual([])
    },
  )

  behaviour(
    'G6',
    'A late or clock-skewed instance cannot record a tick again after its run has finished and been pruned. (the recording itself comes late)',
    async (world) => {
      const { anchor } = await putByHand(world, 'bell')
      const heldUp = replaying(1_500)
      await world.store.schedules.advance({ limit: 10, lookaheadMs: 1_500, plan: heldUp })
      const { fired } = await startChimers(world, 1, { roles: ['run'] })
      await world.until(() => finished(world, 'bell', 1), 'the tick to have run')
      await pruneAll(world)
      const late = await world.store.schedules.advance({ limit: 10, lookaheadMs: 2_000, plan: heldUp })
      expect(late).toMatchObject({ schedules: 1, recorded: 0 })
      await world.store.schedules.advance({ limit: 10, lookaheadMs: 2_000, plan })
      await world.until(() => fired.length >= 2, 'the next tick')
      expect(fired.slice(0, 2)).toEqual(ticksAfter(anchor, 1_000, 2))
    },
  )

  behaviour(
    'G7',
    'Old runs are cleaned up by themselves, by age and by count, and G6 still holds. (by age)',
    async (world) => {
      const { instances, fired } = await startChimers(world, 2, { history: { maxAge: '1s' } })
      const { anchor } = await instances[0].schedules.put('bell', { every: '1s', job: 'chime' })
      const second = anchor + 2_000
      await world.until(() => fired.includes(second), 'the second tick')
      await world.until(async () => (await recordedTicks(world, 'bell')).every((tick) => tick > second), 'its pruning')
      await startChimers(world, 1, { skewMs: -600_000, fired })
      const seen = fired.length
      await world.until(() => fired.length >= seen + 2, 'two more ticks')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )

  behaviour(
    'G7',
    'Old runs are cleaned up by themselves, by age and by count, and G6 still holds. (by count)',
    async (world) => {
      const { instances, fired } = await startChimers(world, 2, { history: { maxRuns: 2 } })
      const bells = ['bell/1', 'bell/2', 'bell/3', 'bell/4']
      for (const id of bells) await instances[0].schedules.put(id, { every: '1s', job: 'chime' })
      await world.until(() => fired.length >= 8, 'two ticks of four bells')
      await world.until(async () => (await endedRuns(world)).length <= 2, 'the pruning')
      const kept = await endedRuns(world)
      expect(kept.every(({ tick = 0 }) => tick >= Math.max(...fired) - 1_000)).toBe(true)
      const seen = fired.length
      await world.until(() => fired.length >= seen + 4, 'another tick of each')
      const times = new Map<number, number>()
      for (const tick of fired) times.set(tick, (times.get(tick) ?? 0) + 1)
      expect(Math.max(...times.values())).toBeLessThanOrEqual(bells.length)
    },
  )

  behaviour(
    'G8',
    "A deploy, restart or leader gap at the tick's second loses no tick: whoever is up next records it. (a deploy)",
    async (world) => {
      const { instances: old, fired } = await startChimers(world, 2, { lookahead: 0 })
      const { anchor } = await old[0].schedules.put('bell', { every: '1s', job: 'chime' })
      await world.until(() => fired.length >= 1, 'the first tick')
      await world.settled(Promise.all(old.map((belfry) => belfry.stop())))
      await world.elapse(1_200)
      await startChimers(world, 2, { lookahead: 0, fired })
      await world.until(() => fired.length >= 4, 'the ticks of the gap and after')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )

  behaviour(
    'G8',
    "A deploy, restart or leader gap at the tick's second loses no tick: whoever is up next records it. (a crash)",
    async (world) => {
      const { instances: old, fired } = await startChimers(world, 1)
      const { anchor } = await old[0].schedules.put('bell', { every: '1s', job: 'chime' })
      await world.until(() => fired.length >= 1, 'the first tick')
      for (const belfry of old) world.crash(belfry)
      await world.elapse(1_200)
      await startChimers(world, 1, { fired })
      await world.until(() => fired.length >= 4, 'the ticks of the gap and after')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )
})

interface ChimerOptions extends InstanceOptions {
  readonly fired?: number[]
}

/** Starts instances that all run the job `chime`; records the nominal instants at which any of them ran it. */
async function startChimers(world: World, count: number, { fired = [], ...options }: ChimerOptions = {}) {
  const instances: Belfry[] = []
  for (let number = 0; number < count; number += 1) {
    const belfry = await world.instance(options)
    belfry.job('chime', { run: ({ tick }) => void fired.push(tick.getTime()) })
    await belfry.start()
    instances.push(belfry)
  }
  return { instances: instances as [Belfry, Belfry, ...Belfry[]], fired }
}

/** Puts a schedule whose ticks only the test records. */
async function putByHand(
  world: World,
  id: string,
  timeline: { every?: string; at?: readonly Date[] } = { every: '1s' },
) {
  const { instances } = await startChimers(world, 1, { roles: [] })
  return instances[0].schedules.put(id, { ...timeline, job: 'chime' })
}

/** The store as several processes would open it. */
async function openHandles(world: World, count: number): Promise<Store[]> {
  const handles: Store[] = []
  const wrap = (store: Store) => {
    handles.push(store)
    return store
  }
  await startChimers(world, count, { roles: [], wrap })
  return handles
}

function advanceAll(
  stores: readonly Store[],
  { lookaheadMs, planner }: { lookaheadMs: number; planner: Planner },
): Promise<AdvanceResult[]> {
  return Promise.all(stores.map((store) => store.schedules.advance({ limit: 10, lookaheadMs, plan: planner })))
}

/** A planner that returns its first plan of each schedule again, however late it writes. */
function replaying(lookaheadMs: number): Planner {
  const plans = new Map<string, Plan>()
  return (schedule, unfinished, now) => {
    const planned = plans.get(schedule.id) ?? plan(schedule, unfinished, now, now + lookaheadMs)
    plans.set(schedule.id, planned)
    return planned
  }
}

/** Records which operations an instance calls. */
function listening(store: Store, asked: Set<string>): Store {
  const part = <Part extends object>(area: string, operations: Part): Part =>
    new Proxy(operations, {
      get(target, name, receiver) {
        asked.add(`${area}.${String(name)}`)
        return Reflect.get(target, name, receiver)
      },
    })
  return {
    ...store,
    schedules: part('schedules', store.schedules),
    runs: part('runs', store.runs),
    leases: part('leases', store.leases),
    instances: part('instances', store.instances),
  }
}

async function recordedTicks(world: World, schedule: string): Promise<number[]> {
  return sorted((await world.runs({ schedule })).map(({ tick = 0 }) => tick))
}

async function endedRuns(world: World) {
  return (await world.runs({ job: 'chime' })).filter(isFinished)
}

async function finished(world: World, schedule: string, count: number): Promise<boolean> {
  return (await world.runs({ schedule })).filter(isFinished).length >= count
}

async function pruneAll(world: World): Promise<void> {
  await world.store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 1_000 })
}

function ticksAfter(anchor: number, everyMs: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => anchor + (index + 1) * everyMs)
}

function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((one, other) => one - other)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
