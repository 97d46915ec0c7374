/** On every store, the first call on an instance that was never started opens the store. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import type { Store } from '../../src/core/store.js'
import { eachOperation } from '../../src/engine/store/each-operation.js'
import type { Job } from '../../src/index.js'
import { silentLogger } from '../../src/index.js'
import { faultyStore } from '../../src/testing/faulty-store.js'
import { locationKinds, type StoreLocation } from './real-stores.js'

interface Scene {
  readonly belfry: Belfry
  readonly job: Job<unknown>
  /** The id of a cancelled run. */
  readonly run: string
}

const HOUR = { every: '1h', job: 'greet' } as const
const PAST = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' } as const

/** Every call that reads or writes the store. `s` is the id of an existing schedule. */
const CALLS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  lock: async ({ belfry }) => (await belfry.lock('l'))?.release(),
  withLock: ({ belfry }) => belfry.withLock('l', () => 1, { wait: '5s' }),
  enqueue: ({ belfry }) => belfry.enqueue('greet'),
  'job.enqueue': ({ job }) => job.enqueue(null),
  'job.enqueueMany': ({ job }) => job.enqueueMany([{ payload: 1 }]),
  'job.available': ({ job }) => job.available(null),
  jobs: ({ belfry }) => belfry.jobs(),
  stats: ({ belfry }) => belfry.stats(),
  doctor: ({ belfry }) => belfry.doctor(),
  freeze: ({ belfry }) => belfry.freeze(),
  frozen: ({ belfry }) => belfry.frozen(),
  thaw: ({ belfry }) => belfry.thaw(),
  now: ({ belfry }) => belfry.now(),
  instances: ({ belfry }) => belfry.instances(),
  'schedules.put': ({ belfry }) => belfry.schedules.put('p', HOUR),
  'schedules.add': ({ belfry }) => belfry.schedules.add(HOUR),
  'schedules.patch': ({ belfry }) => belfry.schedules.patch('s', { payload: 1 }),
  'schedules.putMany': ({ belfry }) => belfry.schedules.putMany([['p', HOUR]]),
  'schedules.get': ({ belfry }) => belfry.schedules.get('s'),
  'schedules.list': ({ belfry }) => belfry.schedules.list(),
  'schedules.remove': ({ belfry }) => belfry.schedules.remove('p'),
  'schedules.pause': ({ belfry }) => belfry.schedules.pause('s'),
  'schedules.resume': ({ belfry }) => belfry.schedules.resume('s'),
  'schedules.trigger': ({ belfry }) => belfry.schedules.trigger('s'),
  'schedules.backfill': ({ belfry }) => belfry.schedules.backfill('s', PAST),
  'schedules.preview': ({ belfry }) => belfry.schedules.preview(HOUR),
  'schedules.explain': ({ belfry }) => belfry.schedules.explain('s'),
  'schedules.recent': ({ belfry }) => belfry.schedules.recent('s'),
  'schedules.ticks': ({ belfry }) => belfry.schedules.ticks('s', PAST),
  'schedules.apply': ({ belfry }) => belfry.schedules.apply({ 'x/1': HOUR }, { prefix: 'x/' }),
  'runs.get': ({ belfry, run }) => belfry.runs.get(run),
  'runs.list': ({ belfry }) => belfry.runs.list(),
  'runs.cancel': ({ belfry, run }) => belfry.runs.cancel(run),
  'runs.retry': ({ belfry, run }) => belfry.runs.retry(run),
  'runs.cancelMany': ({ belfry }) => belfry.runs.cancelMany({ all: true }),
  'runs.retryMany': ({ belfry }) => belfry.runs.retryMany({ schedule: 'none' }),
  'runs.wait': ({ belfry, run }) => belfry.runs.wait(run),
  'runs.watch': async ({ belfry }) => (await belfry.runs.watch(() => {}))(),
  'runs.changedSince': ({ belfry }) => belfry.runs.changedSince(new Date()),
  'locks.list': ({ belfry }) => belfry.locks.list(),
  'locks.inspect': ({ belfry }) => belfry.locks.inspect('l'),
  'locks.grant': ({ belfry }) => belfry.locks.grant('g', { holder: 'me' }),
  'locks.renewGrant': ({ belfry }) => belfry.locks.renewGrant('g', { token: 1, holder: 'me' }),
  'locks.releaseGrant': ({ belfry }) => belfry.locks.releaseGrant('g', { token: 1 }),
  'locks.reset': ({ belfry }) => belfry.locks.reset('l'),
  'records.put': ({ belfry }) => belfry.records.put({ kind: 'note', id: 'a', body: 1 }),
  'records.get': ({ belfry }) => belfry.records.get('note', 'a'),
  'records.list': ({ belfry }) => belfry.records.list({ kind: 'note', limit: 10 }),
  'records.remove': ({ belfry }) => belfry.records.remove('note', 'a'),
}

const calls = Object.entries(CALLS)

function newInstance(store: Store): Pick<Scene, 'belfry' | 'job'> {
  const belfry = createBelfry({ store, logger: silentLogger })
  return { belfry, job: belfry.job('greet', { exclusive: true, run: () => null }) }
}

/** Makes an open store refuse each call before `open()`, as a closed one does, without connecting anew in each test. */
function closedUntilOpened(store: Store): Store {
  let isOpen = false
  const guarded = eachOperation(store, (name, operation) => (...args) => {
    return isOpen ? operation(...args) : Promise.reject(new Error(`${name} came before open()`))
  })
  return {
    ...guarded,
    async open() {
      isOpen = true
    },
    async close() {},
  }
}

describe.each(locationKinds)('before start(), on $name', ({ make }) => {
  let location: StoreLocation
  let opened: Store
  let run = ''

  beforeAll(async () => {
    location = await make()
    const { belfry } = newInstance(location.handle())
    await belfry.schedules.put('s', HOUR)
    run = (await belfry.enqueue('other')).run
    await belfry.runs.cancel(run)
    await belfry.stop()
    opened = location.handle()
    await opened.open()
  })

  afterAll(async () => {
    await opened.close()
    await location.remove()
  })

  it.each(calls)('%s opens the store, and after stop() is refused as NOT_RUNNING', async (_, call) => {
    const instance = newInstance(closedUntilOpened(opened))
    try {
      await call({ ...instance, run })
    } finally {
      await instance.belfry.stop()
    }
    await expect(call({ ...instance, run })).rejects.toMatchObject({ code: 'NOT_RUNNING' })
  })

  it('one instance reads what another wrote, and neither was started', async () => {
    const [one, other] = [newInstance(location.handle()).belfry, newInstance(location.handle()).belfry]
    await one.schedules.put('found', HOUR)
    expect((await other.schedules.list({ prefix: 'found' })).items).toMatchObject([{ id: 'found' }])
    await Promise.all([one.stop(), other.stop()])
  })

  it('concurrent first calls open the store once, and start() does not open it again', async () => {
    const handle = location.handle()
    let opened = 0
    const open = () => {
      opened += 1
      return handle.open()
    }
    const { belfry } = newInstance({ ...handle, open })
    await Promise.all([
      belfry.now(),
      belfry.schedules.list(),
      belfry.runs.list(),
      belfry.lock('together'),
      belfry.start(),
    ])
    expect(opened).toBe(1)
    await belfry.stop()
  })

  it('a first call that fails to open the store rejects, and the next call tries again', async () => {
    const handle = location.handle()
    let isUp = false
    const open = () => (isUp ? handle.open() : Promise.reject(new Error('the store is down')))
    const { belfry } = newInstance({ ...handle, open })
    const refused = [belfry.schedules.list(), belfry.lock('again'), belfry.start()]
    for (const call of refused) await expect(call).rejects.toThrow('the store is down')
    isUp = true
    expect(await belfry.schedules.get('s')).toMatchObject({ id: 's' })
    await belfry.start()
    await belfry.stop()
  })

  it('stop() during the opening waits for it, closes the store, and refuses the waiting calls', async () => {
    const handle = location.handle()
    let [goOn, closed] = [() => {}, 0]
    const held = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const { belfry } = newInstance({
      ...handle,
      open: () => held.then(() => handle.open()),
      async close() {
        closed += 1
        await handle.close()
      },
    })
    const waiting = [belfry.now(), belfry.schedules.list()].map((call) =>
      expect(call).rejects.toMatchObject({ code: 'NOT_RUNNING' }),
    )
    const stopping = belfry.stop()
    await new Promise((resolve) => setImmediate(resolve))
    expect(closed).toBe(0)
    goOn()
    await Promise.all([stopping, ...waiting])
    expect(closed).toBe(1)
  })

  it('a lock is renewed, so it outlives its TTL while it is held', async () => {
    const [holder, other] = [newInstance(location.handle()).belfry, newInstance(location.handle()).belfry]
    const lock = await holder.lock('renewed', { ttl: '2s' })
    const first = (await other.locks.inspect('renewed'))[0]?.expiresAt ?? 0
    const renewedUntil = async () => (await other.locks.inspect('renewed'))[0]?.expiresAt
    await expect.poll(renewedUntil, { timeout: 20_000 }).toBeGreaterThan(first + 2_500)
    expect(lock?.signal.aborted).toBe(false)
    await holder.stop()
    expect(await other.lock('renewed')).toBeDefined()
    await other.stop()
  })

  it('opening the store does not shorten the trusted time of a lock', async () => {
    const handle = location.handle()
    const slowly = () => new Promise((resolve) => setTimeout(resolve, 1_200)).then(() => handle.open())
    const { belfry } = newInstance({ ...handle, open: slowly })
    const lock = await belfry.lock('slowly opened', { ttl: '1s', renew: false })
    expect(lock?.signal.aborted).toBe(false)
    await belfry.stop()
  })

  it('a lost answer does not keep the store from being opened', async () => {
    const random = { chance: () => true, integer: () => 1 }
    const faults = { failAfterApply: 1 }
    const store = faultyStore(location.handle(), { random: random as never, clock: {} as never, faults })
    const { belfry } = newInstance(store)
    await expect(belfry.schedules.list()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    store.setFaulty(false)
    expect(await belfry.schedules.get('s')).toMatchObject({ id: 's' })
    await belfry.stop()
  })
})
