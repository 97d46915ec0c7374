import { expect } from 'vitest'
import { area, LONG_LEASE_MS } from './scene.js'

export const instances = area('instances', {
  'an instance is listed with the information that it joined with': async ({ store }) => {
    const info = {
      ...{ id: 'one', host: 'box', pid: 42, app: 'shop', release: '7', declarations: 'hash', zoneData: '2026a' },
      jobs: [{ name: 'work', exclusive: { by: ['a'], limit: 2, whenBusy: 'skip', checkOnEnqueue: true } as const }],
    }
    const { now } = await store.instances.join(info, 60_000)
    expect(await store.instances.list()).toEqual([{ ...info, joinedAt: now, beatAt: now, expiresAt: now + 60_000 }])
    expect(await store.instances.jobs()).toEqual(info.jobs)
  },

  'a beat extends the lease of the instance': async (scene) => {
    await scene.join('one', 60_000)
    await scene.elapse(20)
    const { now } = await scene.beat('one', [], LONG_LEASE_MS)
    const [instance] = await scene.store.instances.list()
    expect(instance).toMatchObject({ beatAt: now, expiresAt: now + LONG_LEASE_MS })
    expect(instance?.joinedAt).toBeLessThan(now)
  },

  'a beat answers when the store heard of the instance before: its last beat, or its join': async (scene) => {
    await scene.join()
    const [joined] = await scene.store.instances.list()
    await scene.elapse(20)
    const first = await scene.beat('one', [])
    expect(first.lastBeatAt).toBe(joined?.beatAt)
    await scene.elapse(20)
    expect((await scene.beat('one', [])).lastBeatAt).toBe(first.now)
  },

  'jobs stay known after the last instance that ran them has left': async ({ store, join }) => {
    await join()
    await store.instances.leave('one')
    const names = (await store.instances.jobs()).map(({ name }) => name)
    expect(names.sort()).toEqual(['other', 'work'])
  },

  'a set of declarations keeps when it was first seen': async (scene) => {
    const { instances } = scene.store
    expect(await instances.declarations('shop')).toEqual([])
    await instances.declare('shop', { hash: 'h1', release: '1', schedules: ['a', 'b'] })
    await scene.elapse(20)
    await instances.declare('shop', { hash: 'h2', schedules: [] })
    await instances.declare('shop', { hash: 'h1', release: '1', schedules: ['a', 'b'] })
    const sets = [...(await instances.declarations('shop'))].sort((one, other) => one.firstSeenAt - other.firstSeenAt)
    expect(sets.map(({ hash, release, schedules }) => [hash, release, schedules])).toEqual([
      ['h1', '1', ['a', 'b']],
      ['h2', undefined, []],
    ])
    expect(sets[1]?.firstSeenAt).toBeGreaterThan(sets[0]?.firstSeenAt ?? Number.POSITIVE_INFINITY)
    expect(await instances.declarations('other')).toEqual([])
  },

  'a set of declarations is alive as long as an instance with it beats': async (scene) => {
    const { instances } = scene.store
    const aliveAt = async () => (await instances.declarations('shop'))[0]?.aliveAt ?? 0
    await instances.declare('shop', { hash: 'h1', schedules: [] })
    await scene.join('one', LONG_LEASE_MS, { app: 'shop', declarations: 'h1' })
    await scene.join('two', LONG_LEASE_MS, { app: 'shop', declarations: 'h2' })
    await scene.elapse(20)
    const { now } = await scene.beat('one', [])
    expect(await aliveAt()).toBe(now)
    await scene.elapse(20)
    await scene.beat('two', [])
    expect(await aliveAt()).toBe(now)
    await instances.leave('one')
    expect(await aliveAt()).toBeLessThan(now + 20)
  },
})
