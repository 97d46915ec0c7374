import { expect } from 'vitest'
import { area, retryIn, type Scene } from './scene.js'

/** The time between ticks: long enough for a slow store. */
const STEP = 500

/** A schedule whose first tick runs and whose second is due after `elapse`. */
async function twoTicks(scene: Scene, overlap: 'allow' | 'skip' | 'queue-one' | 'queue-all' | 'cancel-running') {
  await scene.join()
  await scene.putTicks('a', [-10, STEP, 2 * STEP, 3 * STEP, 90_000_000], { overlap })
  await scene.advance()
  const first = await scene.claimOne()
  await scene.elapse(STEP + 50)
  await scene.advance()
  return first
}

export const overlap = area('overlap', {
  'allow: ticks run side by side': async (scene) => {
    await twoTicks(scene, 'allow')
    expect(await scene.statesOf('a')).toEqual(['running', 'ready'])
  },

  'skip: a tick is skipped while an earlier run is unfinished': async (scene) => {
    const first = await twoTicks(scene, 'skip')
    expect(await scene.statesOf('a')).toEqual(['running'])
    expect(await scene.skipsOf('a')).toEqual(['1 overlap'])
    await scene.settle(first)
    await scene.elapse(STEP)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'ready'])
  },

  'skip: a run between attempts counts as unfinished': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, STEP, 90_000_000], { overlap: 'skip' })
    await scene.advance()
    await scene.settle(await scene.claimOne(), retryIn(60_000))
    await scene.elapse(STEP + 50)
    await scene.advance()
    expect(await scene.skipsOf('a')).toEqual(['1 overlap'])
  },

  'skip: only one tick is recorded ahead': async (scene) => {
    await scene.putTicks('a', [60_000, 61_000], { overlap: 'skip' })
    expect(await scene.advance({ lookaheadMs: 120_000 })).toMatchObject({ recorded: 1 })
    await scene.advance({ lookaheadMs: 120_000 })
    expect(await scene.runsOf('a')).toHaveLength(1)
    expect(await scene.skipsOf('a')).toEqual([])
  },

  'queue-one: one waits, later ticks are skipped until it starts': async (scene) => {
    const first = await twoTicks(scene, 'queue-one')
    expect(await scene.statesOf('a')).toEqual(['running', 'waiting overlap'])
    expect(await scene.claim()).toEqual([])
    await scene.elapse(STEP)
    await scene.advance()
    expect(await scene.skipsOf('a')).toEqual(['1 overlap'])
    await scene.settle(first)
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'ready'])
    await scene.claimOne()
    await scene.elapse(STEP)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'running', 'waiting overlap'])
  },

  'queue-all: all wait, and run one by one, oldest first': async (scene) => {
    const first = await twoTicks(scene, 'queue-all')
    await scene.elapse(STEP)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['running', 'waiting overlap', 'waiting overlap'])
    await scene.settle(first)
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'ready', 'waiting overlap'])
    const [second, ...none] = await scene.claim()
    expect(none).toEqual([])
    await scene.settle(second ?? first, retryIn(60_000))
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'ready', 'waiting overlap'])
    await scene.store.runs.cancel(second?.id ?? '')
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'cancelled', 'ready'])
  },

  'queue-all: a waiting run that is cancelled lets the others keep their places': async (scene) => {
    const first = await twoTicks(scene, 'queue-all')
    await scene.elapse(STEP)
    await scene.advance()
    const [, second] = await scene.runsOf('a')
    await scene.store.runs.cancel(second?.id ?? '')
    expect(await scene.statesOf('a')).toEqual(['running', 'cancelled', 'waiting overlap'])
    await scene.settle(first)
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'cancelled', 'ready'])
  },

  'cancel-running: the running attempt is asked to cancel, and the new run waits for it': async (scene) => {
    const first = await twoTicks(scene, 'cancel-running')
    expect(await scene.statesOf('a')).toEqual(['running', 'waiting overlap'])
    expect((await scene.run(first.id)).cancelRequested).toBe(true)
    expect((await scene.beat('one', [first])).cancel).toEqual([first.id])
    await scene.settle(first, { kind: 'cancelled' })
    expect(await scene.statesOf('a')).toEqual(['cancelled', 'ready'])
  },

  'cancel-running: runs that never started are skipped, runs between attempts are cancelled': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, STEP, 2 * STEP, 90_000_000], { overlap: 'cancel-running' })
    await scene.advance()
    await scene.elapse(STEP + 50)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['skipped overlap', 'ready'])
    await scene.settle(await scene.claimOne(), retryIn(60_000))
    await scene.elapse(STEP)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['skipped overlap', 'cancelled', 'ready'])
  },

  'a run that was taken over still counts as unfinished, and a lost one does not': async (scene) => {
    await scene.join('dying')
    await scene.putTicks('a', [-10, STEP, 90_000_000], { overlap: 'queue-one' })
    await scene.advance()
    await scene.claimOne('dying')
    await scene.elapse(STEP + 50)
    await scene.advance()
    await scene.store.instances.leave('dying')
    expect(await scene.statesOf('a')).toEqual(['ready', 'waiting overlap'])
    await scene.store.runs.cancel((await scene.runsOf('a'))[0]?.id ?? '')
    expect(await scene.statesOf('a')).toEqual(['cancelled', 'ready'])
  },

  'a newly put policy counts the ticks recorded before it': async (scene) => {
    await scene.join()
    const instants = await scene.putTicks('a', [-10, STEP, 90_000_000])
    const running = await scene.putTicks('b', [-10, STEP, 90_000_000])
    await scene.advance()
    await scene.claim('one', { jobs: [{ name: 'work', limit: 1 }] })
    await scene.claim('one', { jobs: [{ name: 'work', limit: 1 }] })
    const waiting = await scene.putTicks('c', [-10, STEP, 90_000_000])
    await scene.advance()
    await scene.put('a', { timeline: { at: instants }, overlap: 'skip' })
    await scene.put('b', { timeline: { at: running }, overlap: 'queue-one' })
    await scene.put('c', { timeline: { at: waiting }, overlap: 'skip' })
    await scene.elapse(STEP + 50)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['running'])
    expect(await scene.statesOf('b')).toEqual(['running', 'waiting overlap'])
    expect(await scene.statesOf('c')).toEqual(['ready'])
  },

  'a schedule that was removed and created again counts runs that still run': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    await scene.claimOne()
    await scene.store.schedules.remove(['a'])
    await scene.putTicks('a', [STEP, 90_000_000], { overlap: 'skip' })
    await scene.elapse(STEP + 50)
    expect(await scene.advance()).toMatchObject({ recorded: 0, skipped: 1 })
  },

  'a trigger with an overlap policy counts unfinished ticks': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    const [tick] = await scene.runsOf('a')
    const trigger = { origin: 'trigger', schedule: 'a', overlap: 'skip' } as const
    expect(await scene.tryEnqueue(trigger)).toEqual({ outcome: 'busy', run: tick?.id })
    const run = await scene.claimOne()
    expect(await scene.tryEnqueue(trigger)).toEqual({ outcome: 'busy', run: run.id })
    await scene.settle(run)
    expect((await scene.tryEnqueue(trigger)).outcome).toBe('enqueued')
  },

  'a backfill that queues waits for ticks that were recorded after it': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, STEP, 90_000_000])
    await scene.advance()
    const first = await scene.claimOne()
    await scene.enqueue({ origin: 'backfill', schedule: 'a', tick: 1_000, backfill: 'may', overlap: 'queue-all' })
    await scene.elapse(STEP + 50)
    await scene.advance()
    const second = await scene.claimOne()
    await scene.settle(first)
    expect(await scene.statesOf('a')).toEqual(['waiting overlap', 'succeeded', 'running'])
    await scene.settle(second)
    expect(await scene.statesOf('a')).toEqual(['ready', 'succeeded', 'succeeded'])
  },

  'a trigger runs beside unfinished runs by default': async (scene) => {
    await scene.put('a', { overlap: 'skip' })
    const first = await scene.enqueue({ origin: 'trigger', schedule: 'a' })
    await scene.enqueue({ origin: 'trigger', schedule: 'a' })
    expect(await scene.statesOf('a')).toEqual(['ready', 'ready'])
    const refused = await scene.tryEnqueue({ origin: 'trigger', schedule: 'a', overlap: 'skip' })
    expect(refused).toEqual({ outcome: 'busy', run: first })
  },

  'a delayed trigger counts as unfinished once it is due': async (scene) => {
    await scene.putTicks('a', [STEP, 2 * STEP, 90_000_000], { overlap: 'skip' })
    await scene.enqueue({ origin: 'trigger', schedule: 'a', delayMs: STEP + STEP / 2 })
    await scene.elapse(STEP + 50)
    expect(await scene.advance()).toMatchObject({ recorded: 1, skipped: 0 })
    await scene.store.runs.cancel((await scene.runsOf('a')).find(({ origin }) => origin === 'tick')?.id ?? '')
    await scene.elapse(STEP)
    expect(await scene.advance()).toMatchObject({ recorded: 0, skipped: 1 })
  },

  'backfills that queue run one by one, and a repeated request adds no run': async (scene) => {
    await scene.join()
    await scene.put('a')
    const backfill = (tick: number) =>
      ({ origin: 'backfill', schedule: 'a', tick, backfill: 'may', overlap: 'queue-all' }) as const
    const first = await scene.enqueue(backfill(1_000))
    await scene.enqueue(backfill(2_000))
    expect(await scene.tryEnqueue(backfill(1_000))).toEqual({ outcome: 'duplicate', run: first })
    expect(await scene.statesOf('a')).toEqual(['ready', 'waiting overlap'])
    await scene.settle(await scene.claimOne())
    expect(await scene.statesOf('a')).toEqual(['succeeded', 'ready'])
    expect(await scene.tryEnqueue(backfill(1_000))).toEqual({ outcome: 'duplicate', run: first })
    expect((await scene.tryEnqueue({ ...backfill(1_000), backfill: 'june' })).outcome).toBe('enqueued')
  },

  'a tick that has run can run again by a backfill, and never as a tick': async (scene) => {
    await scene.join()
    const [tick = 0] = await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    await scene.settle(await scene.claimOne())
    await scene.enqueue({ origin: 'backfill', schedule: 'a', tick, backfill: 'again' })
    expect(await scene.advance()).toMatchObject({ recorded: 0 })
    expect(await scene.statesOf('a')).toEqual(expect.arrayContaining(['succeeded', 'ready']))
  },
})
