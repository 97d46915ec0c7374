import { expect } from 'vitest'
import { area, PAST_LEASE_MS, SHORT_LEASE_MS } from './scene.js'

const WAIT = { waitMs: 60_000 }

export const leaseQueue = area('waiting for a lease', {
  'a release hands the lease to the oldest waiter, who finds it his when he asks again': async (scene) => {
    const first = await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.tryAcquire('l', 'c', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    const [held] = await scene.store.leases.inspect('l')
    expect(held).toMatchObject({ holder: 'b' })
    expect(held?.token).toBeGreaterThan(first.token)
    expect(await scene.tryAcquire('l', 'c', WAIT)).toMatchObject({ acquired: false })
    expect(await scene.acquire('l', 'b', WAIT)).toMatchObject({ token: held?.token })
    await scene.store.leases.release({ name: 'l', holder: 'b' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'c' }])
  },

  'asking again does not lose the place': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.tryAcquire('l', 'c', WAIT)
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
  },

  'nobody overtakes those who wait when a lease runs out': async (scene) => {
    await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.tryAcquire('l', 'pushy')).toMatchObject({ acquired: false })
    expect(await scene.tryAcquire('l', 'b', WAIT)).toMatchObject({ acquired: true })
  },

  'a place is given up when its time is over': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'gone', { waitMs: 600 })
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.elapse(650)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
  },

  'a place can be given back': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    expect(await scene.store.leases.release({ name: 'l', holder: 'b' })).toBe(true)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toEqual([])
  },

  'who does not wait has no place': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b')
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toEqual([])
  },

  'a reset hands the lease on too, and those who came before it are next': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.tryAcquire('l', 'c', WAIT)
    await scene.store.leases.reset('l')
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
    await scene.tryAcquire('l', 'late', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'b' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'c' }])
  },

  'a waiter who died gets the lease only for its own time': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'dead', { ...WAIT, ttlMs: SHORT_LEASE_MS })
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: false })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: true })
  },

  'of a release and an acquire at once the lease ends with one holder': async (scene) => {
    await scene.acquire('l', 'a')
    const [, asked] = await Promise.all([
      scene.store.leases.release({ name: 'l', holder: 'a' }),
      scene.tryAcquire('l', 'b', WAIT),
    ])
    const holders = await scene.store.leases.inspect('l')
    expect(holders).toMatchObject([{ holder: 'b' }])
    expect(await scene.acquire('l', 'b', WAIT)).toMatchObject({ token: holders[0]?.token })
    if (asked.acquired) expect(asked.lease.token).toBe(holders[0]?.token)
  },

  'free permits go to as many as wait for them': async (scene) => {
    const pair = { ...WAIT, permits: 2 }
    await scene.acquire('l', 'a', pair)
    await scene.acquire('l', 'b', pair)
    for (const holder of ['c', 'd', 'e']) await scene.tryAcquire('l', holder, pair)
    await scene.store.leases.reset('l')
    expect((await scene.store.leases.inspect('l')).map(({ holder }) => holder).sort()).toEqual(['c', 'd'])
  },
})
