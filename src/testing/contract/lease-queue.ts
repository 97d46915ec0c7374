import { expect } from 'vitest'
import { area, LONG_LEASE_MS, PAST_LEASE_MS, SHORT_LEASE_MS } from './scene.js'

const WAIT = { waitMs: 60_000 }
/** Long enough for a slow store to do a few operations, short enough to wait for. */
const SHORT_WAIT = { waitMs: 600 }
const PAST_PLACE_MS = 700

export const leaseQueue = area('waiting for a lease', {
  'a release hands the lease to the oldest waiter, which has it when it asks again': async (scene) => {
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

  'when a lease expires, a newcomer does not overtake the waiters': async (scene) => {
    await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.tryAcquire('l', 'pushy')).toMatchObject({ acquired: false })
    expect(await scene.tryAcquire('l', 'b', WAIT)).toMatchObject({ acquired: true })
  },

  'a waiter’s place expires': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'gone', { waitMs: 600 })
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.elapse(650)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
  },

  'a waiter can give up its place': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    expect(await scene.store.leases.release({ name: 'l', holder: 'b' })).toBe(true)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toEqual([])
  },

  'a loser without `waitMs` has no place in the queue': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b')
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toEqual([])
  },

  'a reset hands the lease to the oldest waiter too': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.tryAcquire('l', 'c', WAIT)
    await scene.store.leases.reset('l')
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
    await scene.tryAcquire('l', 'late', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'b' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'c' }])
  },

  'a lease that was handed to a waiter lasts no longer than its place, until the waiter asks again': async (scene) => {
    await scene.acquire('l', 'a')
    const asked = await scene.tryAcquire('l', 'b', SHORT_WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    const [handed] = await scene.store.leases.inspect('l')
    expect(handed?.holder).toBe('b')
    expect(handed?.expiresAt).toBeLessThanOrEqual(asked.now + SHORT_WAIT.waitMs)
    const confirmed = await scene.tryAcquire('l', 'b', SHORT_WAIT)
    expect(confirmed).toMatchObject({ acquired: true, lease: { token: handed?.token } })
    const [held] = await scene.store.leases.inspect('l')
    expect(held).toMatchObject({ holder: 'b', token: handed?.token })
    expect(held?.expiresAt).toBeGreaterThanOrEqual(confirmed.now + LONG_LEASE_MS)
  },

  'waiters that died hold up a live one for no longer than one place lasts, however many they are': async (scene) => {
    await scene.acquire('l', 'a')
    for (const holder of ['dead1', 'dead2', 'dead3', 'dead4', 'dead5']) {
      await scene.tryAcquire('l', holder, SHORT_WAIT)
    }
    await scene.tryAcquire('l', 'alive', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'dead1' }])
    await scene.elapse(PAST_PLACE_MS)
    expect(await scene.tryAcquire('l', 'alive', WAIT)).toMatchObject({ acquired: true })
    const [held] = await scene.store.leases.inspect('l')
    expect(held).toMatchObject({ holder: 'alive' })
  },

  'a permit that was handed to a waiter that died goes to the next one, and the other permits stay': async (scene) => {
    const pair = { permits: 2 }
    const other = await scene.acquire('l', 'other', pair)
    await scene.acquire('l', 'a', pair)
    await scene.tryAcquire('l', 'dead', { ...SHORT_WAIT, ...pair })
    await scene.tryAcquire('l', 'alive', { ...WAIT, ...pair })
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    await scene.elapse(PAST_PLACE_MS)
    expect(await scene.tryAcquire('l', 'alive', { ...WAIT, ...pair })).toMatchObject({ acquired: true })
    const held = await scene.store.leases.inspect('l')
    expect(held.map(({ holder }) => holder).sort()).toEqual(['alive', 'other'])
    expect(held.find(({ holder }) => holder === 'other')).toEqual(other)
  },

  'a waiter that asks in time keeps its place for longer than one place lasts': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'b', SHORT_WAIT)
    await scene.tryAcquire('l', 'c', WAIT)
    for (let asked = 0; asked < 4; asked += 1) {
      await scene.elapse(SHORT_WAIT.waitMs / 3)
      expect(await scene.tryAcquire('l', 'b', SHORT_WAIT)).toMatchObject({ acquired: false })
    }
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.store.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
  },

  'a waiter that was handed the lease too long ago and asks again has it while nobody else was given it': async (
    scene,
  ) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'late', SHORT_WAIT)
    await scene.tryAcquire('l', 'b', WAIT)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    const [handed] = await scene.store.leases.inspect('l')
    await scene.elapse(PAST_PLACE_MS)
    const late = await scene.tryAcquire('l', 'late', SHORT_WAIT)
    expect(late).toMatchObject({ acquired: true, lease: { token: handed?.token } })
    expect(await scene.tryAcquire('l', 'b', WAIT)).toMatchObject({ acquired: false })
  },

  'a waiter who died gets the lease only for its own time': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.tryAcquire('l', 'dead', { ...WAIT, ttlMs: SHORT_LEASE_MS })
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: false })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: true })
  },

  'after a release and an acquire at once, the lease has one holder': async (scene) => {
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

  'free permits go to as many waiters': async (scene) => {
    const pair = { ...WAIT, permits: 2 }
    await scene.acquire('l', 'a', pair)
    await scene.acquire('l', 'b', pair)
    for (const holder of ['c', 'd', 'e']) await scene.tryAcquire('l', holder, pair)
    await scene.store.leases.reset('l')
    expect((await scene.store.leases.inspect('l')).map(({ holder }) => holder).sort()).toEqual(['c', 'd'])
  },
})
