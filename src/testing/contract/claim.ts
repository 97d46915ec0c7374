import { expect } from 'vitest'
import { area, grows, ids, key, PAST_LEASE_MS, retryIn, SHORT_LEASE_MS } from './scene.js'

export const claim = area('claim', {
  'runs are returned in the order in which they were taken, with and without keys': async (scene) => {
    await scene.join()
    const first = await scene.enqueue()
    const second = await scene.enqueue({ key: key('k') })
    const third = await scene.enqueue()
    expect((await scene.claim()).map(({ id }) => id)).toEqual([first, second, third])
  },

  'a claimed run is running, with a token and its instance': async (scene) => {
    await scene.join()
    const id = await scene.enqueue({ payload: { a: 1 } })
    const { now, runs } = await scene.claimAll()
    expect(runs).toHaveLength(1)
    expect(runs[0]).toMatchObject({
      id,
      state: 'running',
      attempt: 1,
      instance: 'one',
      startedAt: now,
      payload: { a: 1 },
    })
    expect(runs[0]?.token).toBeGreaterThanOrEqual(Math.floor(now * 1_000))
    expect(await scene.run(id)).toEqual(runs[0])
    expect(await scene.claim()).toEqual([])
  },

  'many claims at once start each run once': async (scene) => {
    for (const id of ['one', 'two', 'three']) await scene.join(id)
    const made = await Promise.all(Array.from({ length: 30 }, () => scene.enqueue()))
    const claims = Array.from({ length: 9 }, (_, at) => scene.claim(['one', 'two', 'three'][at % 3], { limit: 4 }))
    const claimed = (await Promise.all(claims)).flat()
    expect(new Set(ids(claimed)).size).toBe(claimed.length)
    const rest = await scene.claim()
    expect([...ids(claimed), ...ids(rest)].sort()).toEqual([...made].sort())
  },

  'the highest priority comes first, then the oldest ready instant, then the oldest run': async (scene) => {
    await scene.join()
    const now = await scene.store.now()
    const plain = { readyAt: now - 50 }
    const [second, third] = [await scene.enqueue(plain), await scene.enqueue(plain)]
    const overdue = await scene.enqueue({ readyAt: now - 100 })
    const low = await scene.enqueue({ readyAt: now - 500, priority: -1 })
    const high = await scene.enqueue({ priority: 5, target: { job: 'other' } })
    const order = [high, overdue, second, third, low]
    expect(ids(await scene.claim('one', { limit: 2 }))).toEqual(order.slice(0, 2))
    expect(ids(await scene.claim())).toEqual(order.slice(2))
  },

  'only the requested jobs are claimed, each up to its capacity': async (scene) => {
    await scene.join()
    for (let count = 0; count < 3; count += 1) {
      await scene.enqueue()
      await scene.enqueue({ target: { job: 'other' } })
      await scene.enqueue({ target: { sink: 'kafka' } })
      await scene.enqueue({ target: { job: 'unknown' } })
    }
    const runs = await scene.claim('one', {
      jobs: [
        { name: 'work', limit: 2 },
        { name: 'other', limit: 0 },
      ],
      sinks: [{ name: 'kafka', limit: 1 }],
    })
    const targets = runs.map(({ target }) => ('job' in target ? target.job : `to ${target.sink}`))
    expect(targets.sort()).toEqual(['to kafka', 'work', 'work'])
    expect(await scene.claim('one', { limit: 0 })).toEqual([])
  },

  'the next ready instant counts only the requested jobs and sinks': async (scene) => {
    await scene.join()
    const now = await scene.store.now()
    await scene.enqueue({ readyAt: now + 30_000, target: { job: 'other' } })
    await scene.enqueue({ readyAt: now + 60_000 })
    const { nextReadyAt } = await scene.claimAll('one', { jobs: [{ name: 'work', limit: 1 }] })
    expect(nextReadyAt).toBe(now + 60_000)
    expect((await scene.claimAll('one', { jobs: [] })).nextReadyAt).toBeUndefined()
  },

  'a first attempt past its deadline is skipped': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000], { deadlineMs: 600 })
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['ready'])
    await scene.elapse(700)
    expect(await scene.claim()).toEqual([])
    expect(await scene.statesOf('a')).toEqual(['skipped deadline'])
  },

  'a tick that no worker starts is missed once it is later than grace and the next one is due': async (scene) => {
    await scene.join()
    const missed = { policy: 'latest', max: 1_000, graceMs: 200 } as const
    await scene.putTicks('dropped', [-10, 600, 90_000_000], { missed })
    await scene.putTicks('kept', [-10, 600, 90_000_000], { missed, backlog: 'keep' })
    await scene.putTicks('to-a-sink', [-10, 600, 90_000_000], { missed, target: { sink: 'kafka' } })
    await scene.putTicks('queued', [-10, 600, 90_000_000], { missed, overlap: 'queue-all' })
    await scene.advance()
    await scene.elapse(300)
    await scene.advance()
    expect(await scene.statesOf('queued')).toEqual(['ready'])
    await scene.elapse(500)
    await scene.advance()
    expect(await scene.statesOf('queued')).toEqual(['skipped missed', 'ready'])
    expect(await scene.statesOf('dropped')).toEqual(['ready', 'ready'])
    const sinks = [{ name: 'kafka', limit: 10 }]
    expect(await scene.claim('one', { sinks })).toHaveLength(6)
    expect(await scene.statesOf('dropped')).toEqual(['skipped missed', 'running'])
    expect(await scene.statesOf('kept')).toEqual(['running', 'running'])
    expect(await scene.statesOf('to-a-sink')).toEqual(['running', 'running'])
  },

  'a claim returns what it skipped, with the reason': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000], { deadlineMs: 600, keep: 'none' })
    await scene.putTicks('b', [-10, 90_000_000], { missed: { policy: 'skip', max: 1_000, graceMs: 500 } })
    await scene.advance()
    await scene.enqueue({ key: key('k') })
    const busy = await scene.enqueue({ key: key('k', { whenBusy: 'skip' }), target: { job: 'other' } })
    const [late] = await scene.runsOf('a')
    const [missed] = await scene.runsOf('b')
    await scene.elapse(700)
    const { runs, skipped } = await scene.claimAll()
    expect(runs).toHaveLength(1)
    expect([...skipped].sort((one, other) => (one.reason < other.reason ? -1 : 1))).toEqual([
      { id: busy, target: { job: 'other' }, origin: 'enqueue', reason: 'busy' },
      { id: late?.id, target: { job: 'work' }, origin: 'tick', schedule: 'a', tick: late?.tick, reason: 'deadline' },
      { id: missed?.id, target: { job: 'work' }, origin: 'tick', schedule: 'b', tick: missed?.tick, reason: 'missed' },
    ])
    expect((await scene.claimAll()).skipped).toEqual([])
  },

  'the deadline does not apply to retries': async (scene) => {
    await scene.join()
    await scene.putTicks('a', [-10, 90_000_000], { deadlineMs: 600 })
    await scene.advance()
    await scene.settle(await scene.claimOne(), retryIn(0))
    await scene.elapse(700)
    expect(await scene.claim()).toHaveLength(1)
  },

  'nothing starts while the store is frozen': async (scene) => {
    await scene.join()
    await scene.enqueue()
    await scene.store.freeze(undefined)
    expect(await scene.claim()).toEqual([])
    expect(await scene.store.frozen()).toMatchObject({ at: expect.any(Number) })
    await scene.store.thaw()
    expect(await scene.claim()).toHaveLength(1)
  },

  'nothing starts for an instance that never joined, has left, or was declared dead': async (scene) => {
    await scene.enqueue()
    expect(await scene.claim('stranger')).toEqual([])
    await scene.join('gone')
    await scene.store.instances.leave('gone')
    expect(await scene.claim('gone')).toEqual([])
    await scene.join('dead', SHORT_LEASE_MS)
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.claim('dead')).toEqual([])
  },

  'nothing starts for an instance whose lease has expired, until it beats again': async (scene) => {
    await scene.join('slow', SHORT_LEASE_MS)
    await scene.enqueue()
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.claim('slow')).toEqual([])
    expect(await scene.beat('slow', [])).toMatchObject({ alive: true })
    expect(await scene.claim('slow')).toHaveLength(1)
  },

  'every attempt of a run has a higher token than the one before': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const tokens: number[] = []
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const run = await scene.claimOne()
      tokens.push(run.token)
      await scene.settle(run, retryIn(0))
    }
    expect(grows(tokens)).toBe(true)
  },

  'a token is never below the floor that the client has seen': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const floor = (await scene.store.now()) * 1_000 + 60_000_000_000
    const [first] = await scene.claim('one', { floor })
    expect(first?.token).toBeGreaterThanOrEqual(floor)
    await scene.settle(first ?? { id: '', token: 0 }, retryIn(0))
    const second = await scene.claimOne()
    expect(second.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
  },

  'an instance can have several claims in flight, which are answered in any order': async (scene) => {
    for (let n = 0; n < 6; n += 1) await scene.enqueue()
    await scene.join()
    const numbers = [4, 2, 3]
    const claimAgain = () => Promise.all(numbers.map((claim) => scene.claim('one', { claim, limit: 2 })))
    const given = await claimAgain()
    const started = given.flatMap(ids)
    expect(new Set(started).size).toBe(started.length)
    expect((await claimAgain()).map((runs) => ids(runs).sort())).toEqual(given.map((runs) => ids(runs).sort()))
    // Concurrent claims may get fewer runs than are ready.
    const left = await scene.claim('one', { claim: 1 })
    expect(new Set([...started, ...ids(left)]).size).toBe(6)
  },

  'a repeated claim returns the same runs, and takes no more': async (scene) => {
    await scene.join()
    for (let count = 0; count < 4; count += 1) await scene.enqueue()
    const first = await scene.claim('one', { claim: 1, limit: 2 })
    expect(first).toHaveLength(2)
    const again = await scene.claim('one', { claim: 1, limit: 2 })
    expect(ids(again).sort()).toEqual(ids(first).sort())
    expect(again.map(({ token }) => token).sort()).toEqual(first.map(({ token }) => token).sort())
  },
})
