import { expect } from 'vitest'
import {
  area,
  failed,
  grows,
  ids,
  key,
  LONG_LEASE_MS,
  PAST_LEASE_MS,
  retryIn,
  type Scene,
  SHORT_LEASE_MS,
} from './scene.js'

/** A run that holds the key, and two that wait for it, oldest first. */
async function threeOfOneKey(scene: Scene) {
  await scene.join()
  const [first, second, third] = [
    await scene.enqueue({ key: key('k') }),
    await scene.enqueue({ key: key('k') }),
    await scene.enqueue({ key: key('k') }),
  ]
  const [running, ...none] = await scene.claim()
  if (running === undefined) throw new Error('nothing was claimed')
  expect([running.id, none]).toEqual([first, []])
  return { running, second, third }
}

async function expectHandedOn(scene: Scene, second: string, third: string) {
  expect(await scene.stateOf(second)).toBe('ready')
  expect(await scene.stateOf(third)).toBe('waiting key')
}

export const keys = area('keys', {
  'at most one run holds a key, and other keys are not affected': async (scene) => {
    const { second, third } = await threeOfOneKey(scene)
    expect([await scene.stateOf(second), await scene.stateOf(third)]).toEqual(['waiting key', 'waiting key'])
    const other = await scene.enqueue({ key: key('another') })
    const free = await scene.enqueue()
    expect(ids(await scene.claim()).sort()).toEqual([other, free].sort())
  },

  'the key is a lease with the run’s token, and can be inspected': async (scene) => {
    const { running } = await threeOfOneKey(scene)
    const [lease] = await scene.store.leases.inspect('k')
    expect(lease).toMatchObject({ name: 'k', token: running.token, run: running.id, instance: 'one' })
    expect((await scene.store.leases.list({ limit: 10 })).items).toEqual([lease])
    await scene.settle(running)
    expect(await scene.store.leases.inspect('k')).toEqual([])
  },

  'a settle hands the key to the oldest waiting run, in the same step': async (scene) => {
    const { running, second, third } = await threeOfOneKey(scene)
    await scene.settle(running)
    await expectHandedOn(scene, second, third)
    expect(ids(await scene.claim())).toEqual([second])
  },

  'so does a failure, a retry, and a cancellation': async (scene) => {
    await scene.join()
    const outcomes = { failed: failed(), retry: retryIn(60_000), cancelled: { kind: 'cancelled' } } as const
    for (const [name, outcome] of Object.entries(outcomes)) {
      await scene.enqueue({ key: key(name) })
      const second = await scene.enqueue({ key: key(name) })
      const [running] = await scene.claim()
      await scene.settle(running ?? { id: '', token: 0 }, outcome)
      expect(await scene.stateOf(second)).toBe('ready')
      await scene.store.runs.cancel(second)
    }
  },

  'a released run gives up its key, and is the first to get it again': async (scene) => {
    const { running } = await threeOfOneKey(scene)
    await scene.settle(running, { kind: 'released' })
    expect(await scene.store.leases.inspect('k')).toEqual([])
    expect(ids(await scene.claim())).toEqual([running.id])
  },

  'so does a rescue, after the run that was taken over has ended': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    const first = await scene.enqueue({ key: key('k') })
    const second = await scene.enqueue({ key: key('k') })
    await scene.claim('dying')
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.store.leases.inspect('k')).toEqual([])
    await scene.join()
    expect(ids(await scene.claim())).toEqual([first])
    expect(await scene.stateOf(second)).toBe('waiting key')
  },

  'so does a reset, which fences the run that held it': async (scene) => {
    const { running, second } = await threeOfOneKey(scene)
    expect(await scene.store.leases.reset('k')).toBe(1)
    expect(await scene.settle(running)).toBe('stale')
    expect((await scene.beat('one', [running])).lost).toEqual([running.id])
    const again = await scene.claimOne()
    expect(again.id).toBe(running.id)
    expect(again.token).toBeGreaterThan(running.token)
    await scene.settle(again)
    expect((await scene.claimOne()).id).toBe(second)
  },

  'cancelling a waiting run keeps the places of the others': async (scene) => {
    const { running, second, third } = await threeOfOneKey(scene)
    await scene.store.runs.cancel(second)
    await scene.settle(running)
    expect(await scene.stateOf(third)).toBe('ready')
  },

  'a first attempt that meets a busy key is skipped if its key says so': async (scene) => {
    await scene.join()
    const skip = key('k', { whenBusy: 'skip' })
    await scene.enqueue({ key: skip })
    const second = await scene.enqueue({ key: skip })
    const [running] = await scene.claim()
    expect(await scene.stateOf(second)).toBe('skipped busy')
    await scene.settle(running ?? { id: '', token: 0 })
    expect(await scene.claim()).toEqual([])
  },

  'a run that has started before waits, even if `whenBusy` is `skip`': async (scene) => {
    await scene.join()
    const skip = key('k', { whenBusy: 'skip' })
    const first = await scene.enqueue({ key: skip })
    await scene.settle(await scene.claimOne(), retryIn(0))
    const lock = await scene.acquire('k', 'somebody')
    expect(await scene.claim()).toEqual([])
    expect(await scene.stateOf(first)).toBe('waiting key')
    await scene.store.leases.release({ name: lock.name, holder: lock.holder })
    expect(await scene.stateOf(first)).toBe('ready')
  },

  'a run does not start before an older one of its key that is due': async (scene) => {
    await scene.join()
    const older = await scene.enqueue({ key: key('k'), target: { job: 'other' } })
    const younger = await scene.enqueue({ key: key('k'), priority: 9 })
    expect(await scene.claim('one', { jobs: [{ name: 'work', limit: 9 }] })).toEqual([])
    expect(await scene.stateOf(younger)).toBe('waiting key')
    expect(ids(await scene.claim())).toEqual([older])
  },

  'when the older run is cancelled before it starts, the younger one is next': async (scene) => {
    await scene.join()
    const older = await scene.enqueue({ key: key('k'), target: { job: 'other' } })
    const younger = await scene.enqueue({ key: key('k') })
    const work = { jobs: [{ name: 'work', limit: 9 }] }
    expect(await scene.claim('one', work)).toEqual([])
    await scene.store.runs.cancel(older)
    expect(ids(await scene.claim('one', work))).toEqual([younger])
  },

  'with permits left, a run that waits behind an older one is ready when that one starts': async (scene) => {
    await scene.join()
    const pair = key('k', { limit: 2 })
    const older = await scene.enqueue({ key: pair, target: { job: 'other' } })
    const younger = await scene.enqueue({ key: pair, priority: 9 })
    expect(await scene.claim('one', { jobs: [{ name: 'work', limit: 9 }] })).toEqual([])
    const started = [...(await scene.claim()), ...(await scene.claim())]
    expect(ids(started)).toEqual([older, younger])
  },

  'an older run that is not due yet blocks no other run': async (scene) => {
    await scene.join()
    await scene.enqueue({ key: key('k'), delayMs: 60_000 })
    const younger = await scene.enqueue({ key: key('k') })
    expect(ids(await scene.claim())).toEqual([younger])
  },

  'a key with several permits is held by as many, and no more': async (scene) => {
    await scene.join()
    const pair = key('k', { limit: 2 })
    const made = [
      await scene.enqueue({ key: pair }),
      await scene.enqueue({ key: pair }),
      await scene.enqueue({ key: pair }),
    ]
    const running = await scene.claim()
    expect(ids(running)).toEqual(made.slice(0, 2))
    expect(await scene.store.leases.inspect('k')).toHaveLength(2)
    expect(new Set(running.map(({ token }) => token)).size).toBe(2)
    await scene.settle(running[1] ?? { id: '', token: 0 })
    expect(ids(await scene.claim())).toEqual(made.slice(2))
  },

  'as many runs become ready as permits are free': async (scene) => {
    await scene.join()
    const pair = key('k', { limit: 2 })
    for (let count = 0; count < 5; count += 1) await scene.enqueue({ key: pair })
    const running = await scene.claim()
    const outcome = { kind: 'succeeded' } as const
    await scene.store.runs.settle(running.map(({ id, token }) => ({ run: id, token, outcome })))
    expect(await scene.claim()).toHaveLength(2)
  },

  'every run of a key executes, one at a time, oldest first': async (scene) => {
    await scene.join()
    await scene.join('two')
    const made: string[] = []
    for (let count = 0; count < 12; count += 1) made.push(await scene.enqueue({ key: key('k') }))
    const order: string[] = []
    const tokens: number[] = []
    for (let round = 0; order.length < made.length && round < 50; round += 1) {
      const claimed = (await Promise.all([scene.claim('one'), scene.claim('two')])).flat()
      expect(claimed.length).toBeLessThanOrEqual(1)
      for (const run of claimed) {
        order.push(run.id)
        tokens.push(run.token)
        await scene.settle(run)
      }
    }
    expect(order).toEqual(made)
    expect(grows(tokens)).toBe(true)
  },

  'tokens of a key grow from run to run, and between locks and runs': async (scene) => {
    await scene.join()
    const lock = await scene.acquire('k', 'somebody', { floor: 0 })
    await scene.enqueue({ key: key('k') })
    expect(await scene.claim()).toEqual([])
    await scene.store.leases.release({ name: 'k', holder: 'somebody' })
    const run = await scene.claimOne()
    expect(run.token).toBeGreaterThan(lock.token)
    expect(await scene.tryAcquire('k', 'other')).toMatchObject({ acquired: false })
    await scene.settle(run)
    expect((await scene.acquire('k', 'other')).token).toBeGreaterThan(run.token)
  },

  'when a lock expires, the sweep makes the waiting run ready': async (scene) => {
    await scene.join()
    await scene.acquire('k', 'somebody', { ttlMs: SHORT_LEASE_MS })
    const id = await scene.enqueue({ key: key('k') })
    expect(await scene.claim()).toEqual([])
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(ids(await scene.claim())).toEqual([id])
  },

  'a waiting lock is served before waiting runs': async (scene) => {
    const { running, second } = await threeOfOneKey(scene)
    expect(await scene.tryAcquire('k', 'somebody', { waitMs: 60_000 })).toMatchObject({ acquired: false })
    await scene.settle(running)
    expect(await scene.stateOf(second)).toBe('waiting key')
    const lock = await scene.acquire('k', 'somebody')
    expect(lock.token).toBeGreaterThan(running.token)
    await scene.store.leases.release({ name: 'k', holder: 'somebody' })
    expect(await scene.stateOf(second)).toBe('ready')
  },

  'when a lease expires, a run does not overtake a waiting lock': async (scene) => {
    await scene.join()
    await scene.acquire('k', 'somebody', { ttlMs: SHORT_LEASE_MS })
    await scene.tryAcquire('k', 'waiter', { waitMs: 60_000 })
    await scene.enqueue({ key: key('k') })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.claim()).toEqual([])
    expect(await scene.store.leases.inspect('k')).toMatchObject([{ holder: 'waiter' }])
  },

  'a run that needs the key of a dead run fences it, even before the sweep': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    await scene.join()
    const first = await scene.enqueue({ key: key('k') })
    const dead = await scene.claimOne('dying')
    await scene.elapse(PAST_LEASE_MS)
    await scene.enqueue({ key: key('k') })
    const [taken, ...none] = await scene.claim()
    expect(none).toEqual([])
    expect(taken).toMatchObject({ id: first, takeovers: 1 })
    expect(await scene.settle(dead)).toBe('stale')
    expect(await scene.store.leases.inspect('k')).toMatchObject([{ token: taken?.token }])
  },

  'a beat extends the keys of the instance’s runs': async (scene) => {
    await scene.join('steady', SHORT_LEASE_MS)
    await scene.enqueue({ key: key('k') })
    const run = await scene.claimOne('steady')
    await scene.beat('steady', [run], LONG_LEASE_MS)
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.tryAcquire('k', 'rival')).toMatchObject({ acquired: false })
    expect(await scene.settle(run)).toBe('settled')
  },

  'a run whose key has expired can settle unless another run took the key': async (scene) => {
    await scene.join('slow', SHORT_LEASE_MS)
    await scene.enqueue({ key: key('kept') })
    await scene.enqueue({ key: key('taken') })
    const [kept, taken] = await scene.claim('slow')
    await scene.elapse(PAST_LEASE_MS)
    const lock = await scene.acquire('taken', 'rival')
    expect(lock.token).toBeGreaterThan(taken?.token ?? Number.POSITIVE_INFINITY)
    expect(await scene.settle(kept ?? { id: '', token: 0 })).toBe('settled')
    expect(await scene.settle(taken ?? { id: '', token: 0 })).toBe('stale')
    expect(await scene.store.leases.inspect('taken')).toEqual([lock])
  },
})
