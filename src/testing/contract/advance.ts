import { expect } from 'vitest'
import { plan } from '../../core/schedules/plan.js'
import { area } from './scene.js'

export const advance = area('advance', {
  'a due tick becomes one ready run, and the cursor moves behind it': async (scene) => {
    const [tick] = await scene.putTicks('a', [-10, 90_000_000], { payload: { n: 1 }, priority: 4, keep: 'failures' })
    const result = await scene.advance()
    expect(result).toMatchObject({ schedules: 1, recorded: 1, skipped: 0 })
    const [run] = await scene.runsOf('a')
    expect(run).toMatchObject({
      ...{ schedule: 'a', tick, readyAt: tick, origin: 'tick', state: 'ready', target: { job: 'work' } },
      ...{ payload: { n: 1 }, priority: 4, keep: 'failures', attempt: 0, failures: 0, takeovers: 0 },
    })
    const schedule = await scene.schedule('a')
    expect(schedule.cursor).toBe(tick)
    expect(result.nextDueAt).toBe(schedule.dueAt)
  },

  'a schedule that is not due stays unchanged, and the result has its next instant': async (scene) => {
    const before = await scene.put('a', { timeline: { every: 60_000 } })
    const result = await scene.advance()
    expect(result).toMatchObject({ schedules: 0, recorded: 0, nextDueAt: before.dueAt })
    expect(await scene.schedule('a')).toEqual(before)
  },

  'without schedules there is no next instant': async ({ advance, store }) => {
    const result = await advance()
    expect(result.nextDueAt).toBeUndefined()
    expect(Math.abs(result.now - (await store.now()))).toBeLessThan(5_000)
  },

  'many advances at once record each tick once': async (scene) => {
    const schedules = Array.from({ length: 20 }, (_, at) => `s${at}`)
    for (const id of schedules) await scene.putTicks(id, [-30, -20, -10, 90_000_000])
    const results = await Promise.all(Array.from({ length: 8 }, () => scene.advance({ limit: 7 })))
    for (let left = 10; left > 0; left -= 1) results.push(await scene.advance())
    expect(results.reduce((sum, { recorded }) => sum + recorded, 0)).toBe(60)
    for (const id of schedules) expect(await scene.runsOf(id)).toHaveLength(3)
  },

  'a recorded tick is not recorded again, even when a planner returns it': async (scene) => {
    const [tick = 0] = await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    const forgetful: typeof plan = (schedule, ...rest) => plan({ ...schedule, cursor: tick - 1 }, ...rest)
    await scene.advance({ lookaheadMs: 100_000_000, plan: forgetful })
    expect((await scene.runsOf('a')).filter((run) => run.tick === tick)).toHaveLength(1)
  },

  'a tick is not recorded again after its run has ended and been pruned': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    await scene.settle(await scene.claimOne())
    await scene.store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 100 })
    expect(await scene.runsOf('a')).toEqual([])
    expect(await scene.advance()).toMatchObject({ recorded: 0 })
    await scene.put('a', { ...(await scene.schedule('a')).definition, payload: 'changed' })
    expect(await scene.advance()).toMatchObject({ recorded: 0 })
    expect(await scene.runsOf('a')).toEqual([])
  },

  'ticks within the look-ahead are recorded ahead and cannot be claimed early': async (scene) => {
    await scene.join()
    const [tick] = await scene.putTicks('a', [600, 90_000_000])
    expect(await scene.advance({ lookaheadMs: 1_000 })).toMatchObject({ recorded: 1 })
    const early = await scene.claimAll()
    expect(early.runs).toEqual([])
    expect(early.nextReadyAt).toBe(tick)
    await scene.elapse(650)
    expect(await scene.claim()).toHaveLength(1)
  },

  'a batch takes at most its limit, longest due first': async (scene) => {
    await scene.putTicks('late', [-10_000, 90_000_000])
    await scene.putTicks('latest', [-30_000, 90_000_000])
    await scene.putTicks('later', [-20_000, 90_000_000])
    expect(await scene.advance({ limit: 2 })).toMatchObject({ schedules: 2, recorded: 2 })
    expect(await scene.runsOf('late')).toEqual([])
    expect(await scene.advance({ limit: 2 })).toMatchObject({ schedules: 1, recorded: 1 })
  },

  'a schedule with more missed ticks than one step plans is due again at now, after the others': async (scene) => {
    const behind: typeof plan = (schedule, unfinished, now, horizon) => plan(schedule, unfinished, now, horizon, 1)
    await scene.putTicks('a', [-40_000, -30_000, 90_000_000])
    await scene.putTicks('b', [-20_000, -15_000, 90_000_000])
    for (let step = 0; step < 2; step += 1) await scene.advance({ limit: 1, plan: behind })
    expect([await scene.runsOf('a'), await scene.runsOf('b')].map(({ length }) => length)).toEqual([1, 1])
    for (let step = 0; step < 4; step += 1) await scene.advance({ limit: 1, plan: behind })
    expect([await scene.runsOf('a'), await scene.runsOf('b')].map(({ length }) => length)).toEqual([2, 2])
  },

  'skipped ranges are listed for every stretch of time that they touch': async (scene) => {
    const missed = { policy: 'skip', max: 10, graceMs: 300 } as const
    const now = await scene.store.now()
    await scene.put('a', { timeline: { at: [now - 50, now - 40, now + 5, now + 90_000_000] }, missed })
    await scene.elapse(400)
    const { skipped, recorded } = await scene.advance()
    expect({ skipped, recorded }).toEqual({ skipped: 3, recorded: 0 })
    const skips = (from: number, to: number) => scene.store.schedules.skips('a', from, to, 10)
    const range = { from: now - 50, to: now + 5, count: 3, reason: 'missed' }
    expect(await skips(0, Number.MAX_SAFE_INTEGER)).toEqual([range])
    expect(await skips(now - 45, now - 41)).toEqual([range])
    expect(await skips(now + 6, now + 1_000)).toEqual([])
    expect(await skips(0, now - 51)).toEqual([])
  },

  'under `latest` a catch-up takes back older unclaimed ticks': async (scene) => {
    const missed = { policy: 'latest', max: 10, graceMs: 400 } as const
    const now = await scene.store.now()
    await scene.put('a', { timeline: { at: [now - 20, now + 500, now + 510, now + 90_000_000] }, missed })
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['ready'])
    await scene.elapse(1_000)
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['skipped missed', 'ready'])
    expect(await scene.skipsOf('a')).toEqual(['1 missed'])
  },

  '`remaining` counts down, and the schedule is finished after the last tick': async (scene) => {
    await scene.putTicks('a', [-30, -20, -10], { times: 2 })
    await scene.advance()
    expect(await scene.runsOf('a')).toHaveLength(2)
    const schedule = await scene.schedule('a')
    expect(schedule).toMatchObject({ remaining: 0 })
    expect(schedule.finishedAt).toBeDefined()
    expect(schedule.nextAt).toBeUndefined()
    expect(schedule.dueAt).toBeUndefined()
    expect((await scene.advance()).nextDueAt).toBeUndefined()
  },

  'a planner that throws changes nothing': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000])
    const before = await scene.schedule('a')
    const broken = () => {
      throw new Error('no plan')
    }
    await expect(scene.advance({ plan: broken })).rejects.toThrow('no plan')
    expect(await scene.schedule('a')).toEqual(before)
    expect(await scene.advance()).toMatchObject({ recorded: 1 })
  },

  'ticks are recorded while the store is frozen, and start when it thaws': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.store.freeze('migration')
    expect(await scene.store.frozen()).toMatchObject({ note: 'migration' })
    expect(await scene.advance()).toMatchObject({ recorded: 1 })
    expect(await scene.claim()).toEqual([])
    await scene.store.thaw()
    expect(await scene.store.frozen()).toBeUndefined()
    expect(await scene.claim()).toHaveLength(1)
  },
})
