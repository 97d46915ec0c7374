import { expect } from 'vitest'
import { area, key, type Scene } from './scene.js'

const KEEP_ALL = { maxAgeMs: 3_600_000, maxRuns: 1_000, leaseAgeMs: 3_600_000, limit: 1_000 }

async function endedRuns(scene: Scene, count: number): Promise<string[]> {
  await scene.join()
  const made: string[] = []
  for (let at = 0; at < count; at += 1) {
    made.push(await scene.enqueue())
    await scene.settle(await scene.claimOne())
  }
  return made
}

async function left(scene: Scene): Promise<string[]> {
  return (await scene.store.runs.list({ limit: 100 })).items.map(({ id }) => id).reverse()
}

export const history = area('history', {
  'history within age and count is kept': async (scene) => {
    const made = await endedRuns(scene, 3)
    expect(await scene.store.runs.prune(KEEP_ALL)).toBe(0)
    expect(await left(scene)).toEqual(made)
  },

  'a list limit must be a whole number of at least 1': async (scene) => {
    await scene.put('a')
    await scene.enqueue()
    await scene.acquire('l', 'x')
    const { schedules, runs, leases } = scene.store
    for (const limit of [-1, 0, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      for (const list of [schedules.list, runs.list, leases.list]) {
        await expect(list({ limit })).rejects.toMatchObject({
          code: 'OPTION_INVALID',
          message: expect.stringMatching(/limit/),
        })
      }
    }
    expect((await runs.list({ limit: 1 })).items).toHaveLength(1)
  },

  'running runs are listed newest first, page by page, and no others': async (scene) => {
    await endedRuns(scene, 1)
    const running: string[] = []
    for (let at = 0; at < 3; at += 1) {
      await scene.enqueue()
      running.push((await scene.claimOne()).id)
    }
    await scene.enqueue()
    const { list } = scene.store.runs
    const { items, next } = await list({ states: ['running'], limit: 2 })
    expect(items.map(({ id }) => id)).toEqual([running[2], running[1]])
    const last = await list({ states: ['running'], limit: 2, ...(next === undefined ? {} : { after: next }) })
    expect(last.items.map(({ id }) => id)).toEqual([running[0]])
    expect(last.next).toBeUndefined()
  },

  'ended runs beyond the count are pruned, oldest first, in bounded steps': async (scene) => {
    const made = await endedRuns(scene, 5)
    expect(await scene.store.runs.prune({ ...KEEP_ALL, maxRuns: 1, limit: 2 })).toBe(2)
    expect(await left(scene)).toEqual(made.slice(2))
    await scene.store.runs.prune({ ...KEEP_ALL, maxRuns: 1 })
    expect(await left(scene)).toEqual(made.slice(4))
  },

  'ended runs beyond the age are pruned, unfinished ones are not': async (scene) => {
    await endedRuns(scene, 2)
    const ready = await scene.enqueue({ delayMs: 600_000 })
    await scene.enqueue()
    const running = await scene.claimOne()
    await scene.elapse(900)
    const young = await scene.enqueue()
    await scene.store.runs.cancel(young)
    await scene.store.runs.prune({ ...KEEP_ALL, maxAgeMs: 800 })
    expect(await left(scene)).toEqual([ready, running.id, young])
  },

  'skipped ranges beyond the age are pruned': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000], { keep: 'none' })
    await scene.advance()
    await scene.store.schedules.pause('a', undefined)
    await scene.store.runs.prune(KEEP_ALL)
    expect(await scene.skipsOf('a')).toEqual(['1 paused'])
    await scene.elapse(20)
    await scene.store.runs.prune({ ...KEEP_ALL, maxAgeMs: 10 })
    expect(await scene.skipsOf('a')).toEqual([])
  },

  'a finished schedule is pruned with its history if `onFinish` is `remove`': async (scene) => {
    await scene.join()
    await scene.putTicks('goes', [-10], { onFinish: 'remove' })
    await scene.putTicks('stays', [-10], { onFinish: 'keep' })
    await scene.putTicks('declared', [-10], { onFinish: 'remove', app: 'shop' })
    await scene.put('active', { onFinish: 'remove' })
    await scene.advance()
    await scene.elapse(20)
    const present = async () => (await scene.store.schedules.list({ limit: 10 })).items.map(({ id }) => id)
    await scene.store.runs.prune({ ...KEEP_ALL, maxAgeMs: 10 })
    expect(await present()).toEqual(['active', 'declared', 'goes', 'stays'])
    for (const run of await scene.claim()) await scene.settle(run)
    await scene.store.runs.prune(KEEP_ALL)
    expect(await present()).toEqual(['active', 'declared', 'goes', 'stays'])
    await scene.store.runs.prune({ ...KEEP_ALL, maxAgeMs: 10 })
    expect(await present()).toEqual(['active', 'declared', 'stays'])
  },

  'after a lease name was pruned, its next token is higher than the old ones': async (scene) => {
    const before = await scene.acquire('l', 'a')
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    await scene.elapse(20)
    await scene.store.runs.prune({ ...KEEP_ALL, leaseAgeMs: 0 })
    expect((await scene.acquire('l', 'b')).token).toBeGreaterThan(before.token)
  },

  'a lease name that is in use again is not pruned': async (scene) => {
    await scene.join()
    const exclusive = { key: key('k'), checkKey: true }
    await scene.enqueue(exclusive)
    await scene.settle(await scene.claimOne())
    const second = await scene.enqueue(exclusive)
    await scene.elapse(20)
    await scene.store.runs.prune({ ...KEEP_ALL, leaseAgeMs: 0 })
    expect(await scene.tryEnqueue(exclusive)).toEqual({ outcome: 'busy', run: second })
  },

  'locks of dead holders are pruned in bounded steps, however many held a name': async (scene) => {
    const request = { name: 'slots', ttlMs: 10, permits: 3, floor: 0 }
    for (const holder of ['a', 'b', 'c']) await scene.store.leases.acquire({ ...request, holder })
    await scene.elapse(50)
    for (let step = 0; step < 4; step += 1) await scene.store.runs.prune({ ...KEEP_ALL, leaseAgeMs: 0, limit: 1 })
    expect(await scene.store.leases.renew([{ ...request, holder: 'a', token: 0 }])).toEqual([undefined])
    expect(await scene.store.leases.inspect('slots')).toEqual([])
  },

  'a held lease is not pruned': async (scene) => {
    const lease = await scene.acquire('l', 'a')
    await scene.elapse(20)
    await scene.store.runs.prune({ ...KEEP_ALL, leaseAgeMs: 0 })
    expect(await scene.store.leases.inspect('l')).toEqual([lease])
    expect(await scene.store.leases.renew([{ ...lease, ttlMs: 60_000 }])).toMatchObject([{ token: lease.token }])
  },
})
