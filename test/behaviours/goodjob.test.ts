/** Behaviours of GoodJob's cron: recording a tick decides which process wins, and the decision outlives the history. */
import { expect } from 'vitest'
import type { Belfry } from '../../src/belfry.js'
import { isFinished } from '../../src/core/runs/run.js'
import { type Plan, plan } from '../../src/core/schedules/plan.js'
import type { AdvanceResult, Planner, Store } from '../../src/core/store.js'
import { behaviours, type InstanceOptions, type TestBed } from './test-bed.js'

const HOUR_MS = 3_600_000

behaviours("GoodJob's cron", (behaviour) => {
  behaviour('G1', 'N instances that reach the same tick at the same moment record exactly one run.', async (bed) => {
    const { instances, fired } = await startChimers(bed, 5)
    const { anchor } = await instances[0].schedules.put('bell', { every: '1s', job: 'chime' })
    await bed.until(() => fired.length >= 4, 'four ticks')
    const ticks = await recordedTicks(bed, 'bell')
    expect(ticks).toEqual(ticksAfter(anchor, 1_000, ticks.length))
    expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
  })

  behaviour(
    'G1',
    'N instances that reach the same tick at the same moment record exactly one run. (eight recorders in one moment)',
    async (bed) => {
      const recorders = await openHandles(bed, 8)
      const { anchor } = await putByHand(bed, 'bell')
      for (let number = 1; number <= 3; number += 1) {
        await bed.until(async () => (await bed.now()) >= anchor + number * 1_000, `tick ${number}`)
        const results = await advanceAll(recorders, { lookaheadMs: 0, planner: plan })
        expect(sum(results.map(({ recorded }) => recorded))).toBe(1)
        expect(await recordedTicks(bed, 'bell')).toEqual(ticksAfter(anchor, 1_000, number))
      }
    },
  )

  behaviour(
    'G2',
    "The dedupe key is (schedule, nominal tick time), enforced by the store's own unique constraint, not by a lock or a leader.",
    async (bed) => {
      const first = new Date((await bed.now()) + HOUR_MS)
      const second = new Date((await bed.now()) + 2 * HOUR_MS)
      await putByHand(bed, 'bell', { at: [first, second] })
      await putByHand(bed, 'gong', { at: [first] })
      const heldUp = replayingPlanner(1.5 * HOUR_MS)
      const taken = await bed.store.schedules.advance({ limit: 10, lookaheadMs: 1.5 * HOUR_MS, plan: heldUp })
      expect(taken.recorded).toBe(2)
      const again = await bed.store.schedules.advance({ limit: 10, lookaheadMs: 2.5 * HOUR_MS, plan: heldUp })
      expect(again).toMatchObject({ schedules: 1, recorded: 0 })
      expect(await recordedTicks(bed, 'bell')).toEqual([first.getTime()])
      expect(await recordedTicks(bed, 'gong')).toEqual([first.getTime()])
      await bed.store.schedules.advance({ limit: 10, lookaheadMs: 2.5 * HOUR_MS, plan })
      expect(await recordedTicks(bed, 'bell')).toEqual([first.getTime(), second.getTime()])
    },
  )

  behaviour(
    'G3',
    'Losing that race is an ordinary outcome: no exception, no error or warning in the log.',
    async (bed) => {
      const { instances, fired } = await startChimers(bed, 5)
      for (let bell = 0; bell < 5; bell += 1) {
        await instances[0].schedules.put(`bell/${bell}`, { every: '1s', job: 'chime' })
      }
      await bed.until(() => fired.length >= 15, 'three ticks of five bells')
      const complaints = instances.flatMap((belfry) =>
        bed.logs(belfry).filter(({ level }) => level === 'warn' || level === 'error'),
      )
      expect(complaints).toEqual([])
    },
  )

  behaviour(
    'G3',
    'Losing that race is an ordinary outcome: no exception, no error or warning in the log. (the answer to the loser)',
    async (bed) => {
      const recorders = await openHandles(bed, 5)
      await putByHand(bed, 'bell', { every: '1h' })
      const results = await advanceAll(recorders, {
        lookaheadMs: 2.5 * HOUR_MS,
        planner: replayingPlanner(1.5 * HOUR_MS),
      })
      expect(results.map(({ recorded }) => recorded).sort()).toEqual([0, 0, 0, 0, 1])
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. Row locks only share out a batch; with them switched off G1 still holds (tested).',
    async (bed) => {
      const recorders = await openHandles(bed, 5)
      const { anchor } = await putByHand(bed, 'bell', { every: '1h' })
      for (let number = 1; number <= 3; number += 1) {
        // All recorders plan the same tick. The look-ahead keeps the schedule due, so they plan that tick again once it
        // is recorded.
        const planner = replayingPlanner((number + 0.5) * HOUR_MS)
        await advanceAll(recorders, { lookaheadMs: (number + 1.5) * HOUR_MS, planner })
        expect(await recordedTicks(bed, 'bell')).toEqual(ticksAfter(anchor, HOUR_MS, number))
      }
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. (held up for two ticks)',
    async (bed) => {
      const { anchor } = await putByHand(bed, 'bell', { every: '1h' })
      const heldUp = replayingPlanner(1.5 * HOUR_MS)
      const advance = (hours: number, planner: Planner) =>
        bed.store.schedules.advance({ limit: 10, lookaheadMs: hours * HOUR_MS, plan: planner })
      await advance(1.5, heldUp)
      await advance(2.5, plan)
      const late = await advance(3.5, heldUp)
      expect(late.recorded).toBe(0)
      expect((await bed.store.schedules.get('bell'))?.cursor).toBe(anchor + 2 * HOUR_MS)
      await advance(3.5, plan)
      expect(await recordedTicks(bed, 'bell')).toEqual(ticksAfter(anchor, HOUR_MS, 3))
    },
  )

  behaviour(
    'G4',
    'No application lock, leader or existence check decides: the recording itself does. (what a recorder asks of the store)',
    async (bed) => {
      const asked = new Set<string>()
      const recorder = await bed.instance({ roles: ['tick'], wrap: (store) => recordingCalls(store, asked) })
      await recorder.start()
      await putByHand(bed, 'bell')
      await bed.until(async () => (await recordedTicks(bed, 'bell')).length >= 3, 'three ticks')
      const decides = [...asked].filter((call) => /^leases\.|^runs\.(get|list|available)$|^schedules\.get$/.test(call))
      expect(asked).toContain('schedules.advance')
      expect(decides).toEqual([])
    },
  )

  behaviour('G5', 'The user configures nothing beyond the schedule to get this.', async (bed) => {
    const fired: number[] = []
    const instances = await Promise.all(
      [1, 2, 3].map(async () => {
        const belfry = await bed.instance()
        belfry.job('chime', { run: ({ tick }) => void fired.push(tick.getTime()) })
        belfry.schedule('bell', { every: '1s', job: 'chime' })
        return belfry
      }),
    )
    await Promise.all(instances.map((belfry) => belfry.start()))
    const anchor = (await bed.store.schedules.get('bell'))?.anchor ?? 0
    await bed.until(() => fired.length >= 3, 'three ticks')
    expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    expect((await bed.store.leases.list({ limit: 10 })).items).toEqual([])
  })

  behaviour(
    'G6',
    'A late or clock-skewed instance cannot record a tick again after its run has finished and been pruned (a durable cursor per schedule outlives history).',
    async (bed) => {
      const { instances, fired } = await startChimers(bed, 2)
      const [punctual, sleeper] = instances
      const at = new Date((await bed.now()) + 1_500)
      await punctual.schedules.put('bell', { at: [at, new Date(at.getTime() + HOUR_MS)], job: 'chime' })
      bed.hold(sleeper)
      await bed.until(() => finished(bed, 'bell', 1), 'the tick to have run')
      await pruneAll(bed)
      expect(await bed.runs({ schedule: 'bell' })).toEqual([])
      bed.resume(sleeper)
      await startChimers(bed, 1, { skewMs: -600_000, fired })
      await startChimers(bed, 1, { skewMs: 600_000, fired })
      await bed.elapse(1_500)
      expect(fired).toEqual([at.getTime()])
      expect(await bed.runs({ schedule: 'bell' })).toEqual([])
    },
  )

  behaviour(
    'G6',
    'A late or clock-skewed instance cannot record a tick again after its run has finished and been pruned. (the recording itself comes late)',
    async (bed) => {
      const { anchor } = await putByHand(bed, 'bell')
      const heldUp = replayingPlanner(1_500)
      await bed.store.schedules.advance({ limit: 10, lookaheadMs: 1_500, plan: heldUp })
      const { fired } = await startChimers(bed, 1, { roles: ['run'] })
      await bed.until(() => finished(bed, 'bell', 1), 'the tick to have run')
      await pruneAll(bed)
      const late = await bed.store.schedules.advance({ limit: 10, lookaheadMs: 2_000, plan: heldUp })
      expect(late).toMatchObject({ schedules: 1, recorded: 0 })
      await bed.store.schedules.advance({ limit: 10, lookaheadMs: 2_000, plan })
      await bed.until(() => fired.length >= 2, 'the next tick')
      expect(fired.slice(0, 2)).toEqual(ticksAfter(anchor, 1_000, 2))
    },
  )

  behaviour(
    'G7',
    'Old runs are cleaned up by themselves, by age and by count, and G6 still holds. (by age)',
    async (bed) => {
      const { instances, fired } = await startChimers(bed, 2, { history: { maxAge: '1s' } })
      const { anchor } = await instances[0].schedules.put('bell', { every: '1s', job: 'chime' })
      const second = anchor + 2_000
      await bed.until(() => fired.includes(second), 'the second tick')
      await bed.until(async () => (await recordedTicks(bed, 'bell')).every((tick) => tick > second), 'its pruning')
      await startChimers(bed, 1, { skewMs: -600_000, fired })
      const seen = fired.length
      await bed.until(() => fired.length >= seen + 2, 'two more ticks')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )

  behaviour(
    'G7',
    'Old runs are cleaned up by themselves, by age and by count, and G6 still holds. (by count)',
    async (bed) => {
      const { instances, fired } = await startChimers(bed, 2, { history: { maxRuns: 2 } })
      const bells = ['bell/1', 'bell/2', 'bell/3', 'bell/4']
      for (const id of bells) await instances[0].schedules.put(id, { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= 8, 'two ticks of four bells')
      await bed.until(async () => (await endedRuns(bed)).length <= 2, 'the pruning')
      const kept = await endedRuns(bed)
      expect(kept.every(({ tick = 0 }) => tick >= Math.max(...fired) - 1_000)).toBe(true)
      const seen = fired.length
      await bed.until(() => fired.length >= seen + 4, 'another tick of each')
      const times = new Map<number, number>()
      for (const tick of fired) times.set(tick, (times.get(tick) ?? 0) + 1)
      expect(Math.max(...times.values())).toBeLessThanOrEqual(bells.length)
    },
  )

  behaviour(
    'G8',
    "A deploy, restart or leader gap at the tick's second loses no tick: whoever is up next records it. (a deploy)",
    async (bed) => {
      const { instances: old, fired } = await startChimers(bed, 2, { lookahead: 0 })
      const { anchor } = await old[0].schedules.put('bell', { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the first tick')
      await bed.settled(Promise.all(old.map((belfry) => belfry.stop())))
      await bed.elapse(1_200)
      await startChimers(bed, 2, { lookahead: 0, fired })
      await bed.until(() => fired.length >= 4, 'the ticks of the gap and after')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )

  behaviour(
    'G8',
    "A deploy, restart or leader gap at the tick's second loses no tick: whoever is up next records it. (a crash)",
    async (bed) => {
      const { instances: old, fired } = await startChimers(bed, 1)
      const { anchor } = await old[0].schedules.put('bell', { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the first tick')
      for (const belfry of old) bed.crash(belfry)
      await bed.elapse(1_200)
      await startChimers(bed, 1, { fired })
      await bed.until(() => fired.length >= 4, 'the ticks of the gap and after')
      expect(sorted(fired)).toEqual(ticksAfter(anchor, 1_000, fired.length))
    },
  )
})

interface ChimerOptions extends InstanceOptions {
  readonly fired?: number[]
}

/** Starts instances that all run the job `chime`; records the nominal instants at which any of them ran it. */
async function startChimers(bed: TestBed, count: number, { fired = [], ...options }: ChimerOptions = {}) {
  const instances: Belfry[] = []
  for (let number = 0; number < count; number += 1) {
    const belfry = await bed.instance(options)
    belfry.job('chime', { run: ({ tick }) => void fired.push(tick.getTime()) })
    await belfry.start()
    instances.push(belfry)
  }
  return { instances: instances as [Belfry, Belfry, ...Belfry[]], fired }
}

/** Puts a schedule whose ticks only the test records. */
async function putByHand(
  bed: TestBed,
  id: string,
  timeline: { every?: string; at?: readonly Date[] } = { every: '1s' },
) {
  const { instances } = await startChimers(bed, 1, { roles: [] })
  return instances[0].schedules.put(id, { ...timeline, job: 'chime' })
}

/** One handle on the store for each of several processes. */
async function openHandles(bed: TestBed, count: number): Promise<Store[]> {
  const handles: Store[] = []
  const wrap = (store: Store) => {
    handles.push(store)
    return store
  }
  await startChimers(bed, count, { roles: [], wrap })
  return handles
}

function advanceAll(
  stores: readonly Store[],
  { lookaheadMs, planner }: { lookaheadMs: number; planner: Planner },
): Promise<AdvanceResult[]> {
  return Promise.all(stores.map((store) => store.schedules.advance({ limit: 10, lookaheadMs, plan: planner })))
}

/** A planner that repeats its first plan of each schedule, as a process does that writes long after it planned. */
function replayingPlanner(lookaheadMs: number): Planner {
  const plans = new Map<string, Plan>()
  return (schedule, unfinished, now) => {
    const planned = plans.get(schedule.id) ?? plan(schedule, unfinished, now, now + lookaheadMs)
    plans.set(schedule.id, planned)
    return planned
  }
}

/** Adds the name of every operation that an instance calls to `asked`. */
function recordingCalls(store: Store, asked: Set<string>): Store {
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

async function recordedTicks(bed: TestBed, schedule: string): Promise<number[]> {
  return sorted((await bed.runs({ schedule })).map(({ tick = 0 }) => tick))
}

async function endedRuns(bed: TestBed) {
  return (await bed.runs({ job: 'chime' })).filter(isFinished)
}

async function finished(bed: TestBed, schedule: string, count: number): Promise<boolean> {
  return (await bed.runs({ schedule })).filter(isFinished).length >= count
}

async function pruneAll(bed: TestBed): Promise<void> {
  await bed.store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 1_000 })
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
