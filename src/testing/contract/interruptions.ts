/** Tests of operations that read, decide and write. Another operation runs between the read and the write. */
import { expect } from 'vitest'
import type { Overlap } from '../../core/policies.js'
import type { Run } from '../../core/runs/run.js'
import { area, type ContractCase, newRun, retryIn, type Scene } from './scene.js'

/** The time between ticks: long enough for a slow store. */
const STEP = 500
const POLICIES = ['skip', 'queue-one', 'queue-all', 'cancel-running'] as const
const FAR = 90_000_000

type Test = (scene: Scene, overlap: Overlap) => Promise<void>

/** One test for each overlap policy that limits a schedule to one run at a time. */
function underEachPolicy(sentence: string, test: Test): Record<string, (scene: Scene) => Promise<void>> {
  return Object.fromEntries(POLICIES.map((overlap) => [`${overlap}: ${sentence}`, (scene) => test(scene, overlap)]))
}

async function twoInstances({ join }: Scene): Promise<void> {
  await join('one')
  await join('two')
}

/** Claims and settles the schedule's runs until none is left, and checks that no two run at once. */
async function workOff({ claim, runsOf, settle }: Scene): Promise<Run[]> {
  for (let round = 0; round < 20; round += 1) {
    await claim()
    const runs = await runsOf('a')
    const [run, ...others] = runs.filter(({ state }) => state === 'running')
    expect(others).toEqual([])
    if (run === undefined) return runs
    await settle({ id: run.id, token: run.token ?? 0 })
  }
  throw new Error('the schedule never ran out of runs')
}

/** Checks that each due tick is a finished run or a recorded skip. */
async function expectTicks(scene: Scene, runs: readonly Run[], count: number): Promise<void> {
  const ticks = runs.filter(({ origin }) => origin === 'tick')
  const ranges = await scene.store.schedules.skips('a', 0, Number.MAX_SAFE_INTEGER, 1_000)
  expect(ticks.length + ranges.reduce((sum, range) => sum + range.count, 0)).toBe(count)
  expect(runs.filter(({ state }) => state === 'waiting' || state === 'ready')).toEqual([])
}

/** A schedule whose first tick was recorded before an outage and not claimed. The second is due after the outage. */
async function missedOne(scene: Scene, overlap: Overlap): Promise<void> {
  await twoInstances(scene)
  const missed = { policy: 'latest', max: 1_000, graceMs: 100 } as const
  await scene.putTicks('a', [-10, STEP, FAR], { overlap, missed })
  await scene.advance()
  await scene.elapse(STEP + 200)
}

/** A schedule whose first tick runs and whose second is due. */
async function runsOne(scene: Scene, overlap: Overlap) {
  await twoInstances(scene)
  await scene.putTicks('a', [-10, STEP, FAR], { overlap })
  await scene.advance()
  const run = await scene.claimOne('two')
  await scene.elapse(STEP + 50)
  return run
}

const advances = area('interruptions of advance', {
  ...underEachPolicy(
    'a missed run that starts while a catch-up drops it holds up the new tick',
    async (scene, overlap) => {
      await missedOne(scene, overlap)
      await scene.interrupt(
        (other) => other.advance(),
        () => scene.claim('two'),
      )
      await scene.advance()
      await expectTicks(scene, await workOff(scene), 2)
    },
  ),

  ...underEachPolicy('a trigger that minds overlap and a tick never run at once', async (scene, overlap) => {
    await twoInstances(scene)
    await scene.putTicks('a', [-10, FAR], { overlap })
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.tryEnqueue({ origin: 'trigger', schedule: 'a', overlap }),
    )
    await scene.advance()
    await expectTicks(scene, await workOff(scene), 1)
  }),

  ...underEachPolicy('a backfill that queues and a tick never run at once', async (scene, overlap) => {
    await twoInstances(scene)
    await scene.putTicks('a', [-10, FAR], { overlap })
    const backfill = newRun({ origin: 'backfill', schedule: 'a', backfill: 'may', overlap: 'queue-all' })
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.store.runs.enqueue([1_000, 2_000].map((tick) => ({ ...backfill, tick }))),
    )
    await scene.advance()
    await expectTicks(scene, await workOff(scene), 1)
  }),

  ...underEachPolicy('what another advance recorded meanwhile holds up the tick after it', async (scene, overlap) => {
    await twoInstances(scene)
    await scene.putTicks('a', [-10, STEP, FAR], { overlap })
    await scene.interrupt(
      (other) => other.advance(),
      async () => {
        await scene.advance()
        await scene.claim('two')
        await scene.elapse(STEP + 50)
        await scene.advance()
      },
    )
    await scene.advance()
    await expectTicks(scene, await workOff(scene), 2)
  }),

  ...underEachPolicy('a tick goes on when the run ends that it was to wait for', async (scene, overlap) => {
    const run = await runsOne(scene, overlap)
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.settle(run),
    )
    await scene.advance()
    await expectTicks(scene, await workOff(scene), 2)
  }),

  ...underEachPolicy('a run that is to be tried again meanwhile still holds up the tick', async (scene, overlap) => {
    const run = await runsOne(scene, overlap)
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.settle(run, retryIn(0)),
    )
    await scene.advance()
    await expectTicks(scene, await workOff(scene), 2)
  }),

  'an overlap policy that is put meanwhile counts running runs': async (scene) => {
    await twoInstances(scene)
    const instants = await scene.putTicks('a', [-10, STEP, FAR])
    await scene.advance()
    await scene.claimOne('two')
    await scene.elapse(STEP - 100)
    await scene.interrupt(
      (other) => other.advance({ lookaheadMs: 200 }),
      () => scene.put('a', { timeline: { at: instants }, overlap: 'skip' }),
    )
    await scene.elapse(200)
    await scene.advance()
    expect((await scene.runsOf('a')).filter(({ state }) => state === 'running')).toHaveLength(1)
    expect(await scene.claim()).toEqual([])
  },

  'a schedule that is paused or removed meanwhile starts nothing': async (scene) => {
    await twoInstances(scene)
    await scene.putTicks('a', [-10, FAR])
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.store.schedules.pause('a', undefined),
    )
    await scene.putTicks('b', [-10, FAR])
    await scene.interrupt(
      (other) => other.advance(),
      () => scene.store.schedules.remove(['b']),
    )
    await scene.advance()
    expect(await scene.claim()).toEqual([])
  },
})

type Change = (other: Scene, instants: readonly number[]) => Promise<unknown>

const CHANGES: Readonly<Record<string, Change>> = {
  'a put': (other, instants) => other.put('a', { timeline: { at: instants.slice(1) } }),
  'a pause': ({ store }) => store.schedules.pause('a', undefined),
  'a removal': ({ store }) => store.schedules.remove(['a']),
}

const changes: readonly ContractCase[] = Object.entries(CHANGES).flatMap(([what, change]) =>
  area('interruptions of changes', {
    [`${what} takes back no tick whose run starts meanwhile`]: async (scene) => {
      await twoInstances(scene)
      const instants = await scene.putTicks('a', [-10, FAR])
      await scene.advance()
      let started: readonly { readonly id: string; readonly token: number }[] = []
      await scene.interrupt(
        (other) => change(other, instants),
        async () => {
          started = await scene.claim('two')
        },
      )
      const [run] = started
      // The other operation came first and took the tick back.
      if (run === undefined) expect(await scene.claim()).toEqual([])
      else expect(await scene.settle(run)).toBe('settled')
    },

    [`${what} takes back the tick that is recorded meanwhile`]: async (scene) => {
      await twoInstances(scene)
      const instants = await scene.putTicks('a', [-10, FAR])
      await scene.interrupt(
        (other) => change(other, instants),
        () => scene.advance(),
      )
      expect(await scene.claim()).toEqual([])
    },
  }),
)

const triggers = area('interruptions of triggers', {
  'of many triggers at once that skip, one is accepted': async (scene) => {
    await twoInstances(scene)
    await scene.put('a')
    const trigger = () => scene.tryEnqueue({ origin: 'trigger', schedule: 'a', overlap: 'skip' })
    const results = await Promise.all(Array.from({ length: 8 }, trigger))
    const accepted = results.filter(({ outcome }) => outcome === 'enqueued')
    expect(accepted).toHaveLength(1)
    for (const { run } of results) expect(run).toBe(accepted[0]?.run)
  },

  'of many triggers at once that queue, one runs at a time': async (scene) => {
    await twoInstances(scene)
    await scene.put('a')
    const trigger = () => scene.tryEnqueue({ origin: 'trigger', schedule: 'a', overlap: 'queue-all' })
    await Promise.all(Array.from({ length: 8 }, trigger))
    const runs = await workOff(scene)
    expect(runs.map(({ state }) => state)).toEqual(Array.from({ length: 8 }, () => 'succeeded'))
  },
})

export const interruptions: readonly ContractCase[] = [...advances, ...changes, ...triggers]
