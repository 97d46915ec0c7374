import { expect } from 'vitest'
import { area, retryIn } from './scene.js'

const AHEAD = { lookaheadMs: 120_000 }

export const takeBack = area('taking back', {
  'a pause takes back a tick recorded ahead, and a resume before its instant loses nothing': async (scene) => {
    const [tick] = await scene.putTicks('a', [60_000, 90_000_000], { times: 2 })
    await scene.advance(AHEAD)
    expect(await scene.statesOf('a')).toEqual(['ready'])
    const paused = await scene.store.schedules.pause('a', 'holiday')
    expect(paused).toMatchObject({ nextAt: tick, remaining: 2, pauseNote: 'holiday' })
    expect(paused?.cursor).toBeLessThan(tick ?? 0)
    expect(paused?.dueAt).toBeUndefined()
    expect(await scene.runsOf('a')).toEqual([])
    const resumed = await scene.store.schedules.resume('a')
    expect(resumed).toMatchObject({ nextAt: tick, dueAt: tick, remaining: 2 })
    expect(resumed?.pausedAt).toBeUndefined()
    expect(resumed?.pauseNote).toBeUndefined()
    await scene.advance(AHEAD)
    expect((await scene.runsOf('a')).map((run) => run.tick)).toEqual([tick])
    expect((await scene.schedule('a')).remaining).toBe(1)
  },

  'a pause skips a due unclaimed tick': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    await scene.store.schedules.pause('a', undefined)
    expect(await scene.statesOf('a')).toEqual(['skipped paused'])
    await scene.store.schedules.resume('a')
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['skipped paused'])
  },

  'a pause takes back a tick that an earlier put left as it was': async (scene) => {
    const instants = await scene.putTicks('a', [-10, 60_000, 90_000_000])
    await scene.advance(AHEAD)
    const over = { target: { job: 'other' }, priority: 3 } as const
    await scene.put('a', { timeline: { at: instants }, ...over })
    await scene.advance(AHEAD)
    expect(await scene.statesOf('a')).toEqual(['ready', 'ready'])
    await scene.store.schedules.pause('a', undefined)
    expect(await scene.statesOf('a')).toEqual(['skipped paused'])
  },

  'a pause, a put and a removal leave a running run alone': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    const run = await scene.claimOne()
    await scene.store.schedules.pause('a', undefined)
    await scene.put('a', { timeline: { every: 1_000 } })
    await scene.store.schedules.remove(['a'])
    expect(await scene.stateOf(run.id)).toBe('running')
    expect(await scene.settle(run)).toBe('settled')
    expect(await scene.stateOf(run.id)).toBe('succeeded')
  },

  'ticks inside a pause become one skipped range under every missed policy': async (scene) => {
    await scene.put('a', { timeline: { every: 50 }, missed: { policy: 'all', max: 1_000, graceMs: 60_000 } })
    await scene.store.schedules.pause('a', undefined)
    await scene.elapse(220)
    expect(await scene.advance()).toMatchObject({ schedules: 0, recorded: 0 })
    await scene.store.schedules.resume('a')
    const skips = await scene.store.schedules.skips('a', 0, Number.MAX_SAFE_INTEGER, 10)
    expect(skips).toHaveLength(1)
    expect(skips[0]).toMatchObject({ reason: 'paused' })
    expect(skips[0]?.count).toBeGreaterThanOrEqual(4)
    const { nextAt = 0 } = await scene.schedule('a')
    expect(nextAt).toBeGreaterThan(skips[0]?.to ?? Number.POSITIVE_INFINITY)
  },

  'pausing a paused schedule changes its note, and resuming twice changes nothing': async ({ store, put }) => {
    await put('a')
    const first = await store.schedules.pause('a', 'one')
    const second = await store.schedules.pause('a', 'two')
    expect(second).toMatchObject({ pausedAt: first?.pausedAt, pauseNote: 'two' })
    const resumed = await store.schedules.resume('a')
    expect(await store.schedules.resume('a')).toEqual(resumed)
  },

  'a paused schedule stays paused after a put': async ({ store, put }) => {
    await put('a')
    await store.schedules.pause('a', 'mine')
    const replaced = await put('a', { timeline: { every: 1_000 } })
    expect(replaced.pausedAt).toBeDefined()
    expect(replaced.pauseNote).toBe('mine')
    expect(replaced.dueAt).toBeUndefined()
  },

  'a changed timeline takes back the old one’s ticks: none of them is claimed afterwards': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 60_000], { missed: { policy: 'all', max: 10, graceMs: 60_000 } })
    await scene.advance(AHEAD)
    expect(await scene.statesOf('a')).toEqual(['ready', 'ready'])
    await scene.put('a', { timeline: { every: 90_000_000 } })
    expect(await scene.statesOf('a')).toEqual(['skipped replaced'])
    expect(await scene.claim()).toEqual([])
  },

  'a put that leaves the timeline alone keeps due ticks, and records future ones again with what is new': async (
    scene,
  ) => {
    const now = await scene.store.now()
    const timeline = { at: [now - 10, now + 60_000] }
    await scene.put('a', { timeline, payload: 'old', times: 5 })
    await scene.advance(AHEAD)
    await scene.put('a', { timeline, payload: 'new', times: 5 })
    expect(await scene.statesOf('a')).toEqual(['ready'])
    expect((await scene.schedule('a')).remaining).toBe(4)
    await scene.advance(AHEAD)
    expect((await scene.runsOf('a')).map(({ tick, payload }) => [tick, payload])).toEqual([
      [now - 10, 'old'],
      [now + 60_000, 'new'],
    ])
    expect((await scene.schedule('a')).remaining).toBe(3)
  },

  'a removal skips due ticks, deletes future ones and forgets the schedule': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 60_000])
    await scene.advance(AHEAD)
    expect(await scene.store.schedules.remove(['a', 'a'])).toEqual(['removed', 'missing'])
    expect(await scene.store.schedules.get('a')).toBeUndefined()
    expect(await scene.statesOf('a')).toEqual(['skipped removed'])
    expect(await scene.claim()).toEqual([])
    expect(await scene.advance(AHEAD)).toMatchObject({ schedules: 0, recorded: 0 })
  },

  'a removal cancels runs between attempts': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    const run = await scene.claimOne()
    await scene.settle(run, retryIn(60_000))
    await scene.store.schedules.remove(['a'])
    expect(await scene.stateOf(run.id)).toBe('cancelled')
  },

  'triggers and enqueues are never taken back': async (scene) => {
    await scene.join()
    await scene.put('a')
    const begun = await scene.enqueue({ origin: 'trigger', schedule: 'a' })
    await scene.settle(await scene.claimOne(), retryIn(60_000))
    const trigger = await scene.enqueue({ origin: 'trigger', schedule: 'a' })
    const enqueued = await scene.enqueue()
    await scene.store.schedules.pause('a', undefined)
    await scene.put('a', { timeline: { every: 1_000 } })
    await scene.store.schedules.remove(['a'])
    expect(await scene.stateOf(begun)).toBe('ready')
    expect(await scene.stateOf(trigger)).toBe('ready')
    expect(await scene.stateOf(enqueued)).toBe('ready')
  },

  'a schedule created again under the same id does not run the old ticks': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 60_000])
    await scene.advance(AHEAD)
    await scene.store.schedules.remove(['a'])
    await scene.put('a', { timeline: { every: 90_000_000 } })
    await scene.advance(AHEAD)
    expect(await scene.statesOf('a')).toEqual(['skipped removed'])
    expect(await scene.claim()).toEqual([])
  },

  'an instant that has run does not run again when its schedule is created again': async (scene) => {
    await scene.join()
    const timeline = { at: [(await scene.store.now()) - 10, (await scene.store.now()) + 90_000_000] }
    await scene.put('a', { timeline })
    await scene.advance()
    await scene.settle(await scene.claimOne())
    await scene.store.schedules.remove(['a'])
    await scene.put('a', { timeline })
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['succeeded'])
    expect(await scene.claim()).toEqual([])
  },

  'due unrecorded ticks are skipped when their timeline ends': async (scene) => {
    const now = await scene.store.now()
    for (const id of ['a', 'b']) await scene.put(id, { timeline: { at: [now - 10, now + 90_000_000] } })
    await scene.put('a', { timeline: { every: 80_000_000 } })
    await scene.store.schedules.remove(['b'])
    expect(await scene.skipsOf('a')).toEqual(['1 replaced'])
    expect(await scene.skipsOf('b')).toEqual(['1 removed'])
    await scene.advance()
    expect(await scene.runsOf('a')).toEqual([])
  },

  'with `keep: none`, a tick that is taken back is still recorded as a skip': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000], { keep: 'none' })
    await scene.advance()
    await scene.store.schedules.pause('a', undefined)
    expect(await scene.runsOf('a')).toEqual([])
    expect(await scene.skipsOf('a')).toEqual(['1 paused'])
  },

  'a put and an advance at once leave either the old tick or the new timeline, never both': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    const [, { recorded }] = await Promise.all([scene.put('a', { timeline: { every: 80_000_000 } }), scene.advance()])
    expect(await scene.claim()).toEqual([])
    expect((await scene.schedule('a')).definition.timeline).toEqual({ every: 80_000_000 })
    expect(await scene.runsOf('a')).toHaveLength(recorded)
  },
})
