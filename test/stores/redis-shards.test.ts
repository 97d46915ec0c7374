/**
 * Runs whose keys are in other shards. With a key in the same shard, one script does each step. Here a step takes
 * several scripts, and the process may stop between any two of them.
 */
import { createClient } from '@redis/client'
import { describe, expect, it } from 'vitest'
import type { RunKey } from '../../src/core/runs/key.js'
import type { NewRun } from '../../src/core/runs/run.js'
import type { ClaimedRun, Store } from '../../src/core/store.js'
import { firstNext } from '../../src/stores/redis/cluster/peek.js'
import { shardKeys, shardOf } from '../../src/stores/redis/cluster/shards.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import { failed, ids, newRun, retryIn, Scene } from '../../src/testing/contract/scene.js'
import { freshRedis } from '../servers/fresh-redis.js'
import { serverUrl } from '../servers/server-url.js'
import { type TestRedis, testRedis, virtualTimeClient } from '../servers/test-redis.js'

const SHARDS = 3

/** A name in another shard than a schedule. */
function nameElsewhere(schedule: string): string {
  for (let at = 0; ; at += 1) {
    const name = `key ${at}`
    if (shardOf(name, SHARDS) !== shardOf(schedule, SHARDS)) return name
  }
}

function exclusive(schedule: string, over: Partial<RunKey> = {}): RunKey {
  return { name: nameElsewhere(schedule), limit: 1, whenBusy: 'wait', ...over }
}

async function inShards(work: (scene: Scene, key: RunKey) => Promise<void>): Promise<void> {
  const opened = await freshRedis(SHARDS)
  await opened.store.open()
  try {
    const scene = new Scene(opened)
    await scene.join()
    await work(scene, exclusive('a'))
  } finally {
    await opened.store.close()
    await opened.close()
  }
}

describe('runs whose keys are in other shards', () => {
  it('run one at a time, oldest first, together with those of the key’s own shard', () =>
    inShards(async (scene, key) => {
      await scene.putTicks('a', [-30, -20, 90_000_000], { key })
      await scene.advance()
      const here = await scene.enqueue({ key })
      const order: (string | undefined)[] = []
      for (let round = 0; round < 3; round += 1) {
        const claimed = await scene.claim()
        expect(claimed).toHaveLength(1)
        const [run] = claimed
        expect(await scene.store.leases.inspect(key.name)).toMatchObject([{ run: run?.id, token: run?.token }])
        expect(await scene.claim()).toEqual([])
        expect(await scene.settle(run ?? { id: '', token: 0 })).toBe('settled')
        order.push(run?.schedule ?? run?.id)
      }
      expect(order).toEqual(['a', 'a', here])
      expect(await scene.statesOf('a')).toEqual(['succeeded', 'succeeded'])
      expect(await scene.store.leases.inspect(key.name)).toEqual([])
    }))

  it('wait while a lock holds their key, and are skipped when the key says so', () =>
    inShards(async (scene, key) => {
      await scene.acquire(key.name, 'somebody')
      await scene.putTicks('a', [-10, 90_000_000], { key: { ...key, whenBusy: 'skip' } })
      await scene.advance()
      expect(await scene.claim()).toEqual([])
      expect(await scene.statesOf('a')).toEqual(['skipped busy'])
    }))

  it('are retried with a new ticket', () =>
    inShards(async (scene, key) => {
      await scene.putTicks('a', [-10, 90_000_000], { key })
      await scene.advance()
      const first = await scene.claimOne()
      await scene.settle(first, retryIn(0))
      const second = await scene.claimOne()
      expect(second).toMatchObject({ id: first.id, attempt: 2 })
      expect(second.token).toBeGreaterThan(first.token)
      // A repeated settlement of the first attempt changes nothing, and leaves the key to the second attempt.
      expect(await scene.settle(first)).toBe('settled')
      expect(await scene.store.leases.inspect(key.name)).toMatchObject([{ token: second.token }])
      expect(await scene.settle(second, failed())).toBe('settled')
      expect(await scene.store.leases.inspect(key.name)).toEqual([])
      expect(await scene.claim()).toEqual([])
    }))

  it('are taken over when their instance dies, and the dead instance settles nothing', () =>
    inShards(async (scene, key) => {
      await scene.join('dying', 300)
      await scene.putTicks('a', [-10, 90_000_000], { key })
      await scene.advance()
      const dead = await scene.claimOne('dying')
      await scene.elapse(2_500)
      await scene.store.runs.rescue(100)
      const run = await scene.claimOne()
      expect(run).toMatchObject({ id: dead.id, takeovers: 1 })
      expect(await scene.settle(dead)).toBe('stale')
      expect(await scene.settle(run)).toBe('settled')
    }))

  it('are fenced when their key is reset', () =>
    inShards(async (scene, key) => {
      await scene.putTicks('a', [-10, 90_000_000], { key })
      await scene.advance()
      const first = await scene.claimOne()
      expect(await scene.store.leases.reset(key.name)).toBe(1)
      expect((await scene.beat('one', [first])).lost).toEqual([first.id])
      expect(await scene.settle(first)).toBe('stale')
      const second = await scene.claimOne()
      expect(second.token).toBeGreaterThan(first.token)
      expect(await scene.settle(second)).toBe('settled')
    }))

  it('stay claimed while their instance’s heartbeat lists them, and become ready when it does not', () =>
    inShards(async (scene, key) => {
      await scene.join('steady', 300)
      await scene.putTicks('a', [-10, 90_000_000], { key })
      await scene.advance()
      const run = await scene.claimOne('steady')
      await scene.elapse(200)
      expect(await scene.beat('steady', [run], 60_000)).toMatchObject({ alive: true, lost: [] })
      await scene.elapse(10_000)
      expect(await scene.tryAcquire(key.name, 'rival')).toMatchObject({ acquired: false })
      await scene.beat('steady', [], 60_000)
      expect(ids(await scene.claim())).toEqual([run.id])
    }))

  it('that were taken back leave the key to others', () =>
    inShards(async (scene, key) => {
      await scene.putTicks('a', [-10, 90_000_000], { key })
      await scene.advance()
      await scene.store.schedules.remove(['a'])
      const other = await scene.enqueue({ key })
      const claimed = [...(await scene.claim()), ...(await scene.claim())]
      expect(ids(claimed)).toEqual([other])
    }))

  it('get another ticket by a later sweep when theirs was lost', async () => {
    const opened = await freshRedis(SHARDS)
    const { store, prefix } = opened
    await store.open()
    const scene = new Scene(opened)
    await scene.join()
    const key = exclusive('a')
    await scene.putTicks('a', [-10, 90_000_000], { key })
    await scene.advance()
    const admin = createClient({ url: await serverUrl('redis') })
    await admin.connect()
    // Simulates a failover that lost the last writes of one shard.
    const lost = shardKeys(prefix, SHARDS)[shardOf(key.name, SHARDS)] ?? ''
    expect(await admin.del([`${lost}runs`, `${lost}queue:0:job:work`])).toBe(2)
    admin.destroy()
    expect(await scene.claim()).toEqual([])
    await scene.elapse(31_000)
    await store.runs.rescue(100)
    const run = await scene.claimOne()
    expect(await scene.settle(run)).toBe('settled')
    await store.close()
    await opened.close()
  })
})

/** A client that performs an operation once, after a number of its commands were answered. */
function interruptible(client: NodeRedis) {
  let [left, act]: [number, (() => Promise<void>) | undefined] = [0, undefined]
  let confirmation: readonly string[] = []
  return {
    client: {
      ...virtualTimeClient(client, async () => {}),
      async sendCommand(args: readonly string[]) {
        if (args.at(-1)?.includes('"hasStarted":true') === true) confirmation = args
        const reply = await client.sendCommand(args)
        if (args[0] === 'PUBLISH' || act === undefined) return reply
        left -= 1
        const now = left === 0 ? act : undefined
        if (left === 0) act = undefined
        await now?.()
        return reply
      },
    },
    /** Sends the last confirmation of a start again, as if a server that was paused had read the command late. */
    confirmAgain: () => client.sendCommand(confirmation),
    interrupt(count: number, what: () => Promise<void>) {
      left = count
      act = what
    },
  }
}

describe('a settlement of a run whose key is in another shard', () => {
  const key = exclusive('a')
  const schedules = Array.from({ length: 100 }, (_, at) => `s${at}`).filter((id) => {
    return shardOf(id, SHARDS) !== shardOf(key.name, SHARDS)
  })

  interface Settling {
    readonly one: Scene
    readonly other: Scene
    readonly elapse: (ms: number) => Promise<void>
    /** Performs an operation once the first process has received this many answers. */
    readonly interrupt: (count: number, act: () => Promise<void>) => void
    /** Claims a run of another schedule for a separate instance with a short lease. */
    readonly claimNext: () => Promise<ClaimedRun>
    readonly confirmAgain: () => Promise<unknown>
  }

  async function whileSettling(work: (settling: Settling) => Promise<void>): Promise<void> {
    const redis = await testRedis()
    let [now, count] = [Date.UTC(2026, 0, 1), 0]
    const elapse = async (ms: number) => {
      now += ms
      await redis.setClock(now)
    }
    await elapse(0)
    const open = async (client: NodeRedis) => {
      const store = redisStore({ client, prefix: redis.prefix, shards: SHARDS }, { handTurned: true })
      await store.open()
      return new Scene({ store, elapse })
    }
    const { client, interrupt, confirmAgain } = interruptible(await redis.client())
    const [one, other] = [await open(client), await open(await redis.client())]
    await other.join('other', 3_600_000)
    const claimNext = async () => {
      count += 1
      await one.join(`dying ${count}`, 300)
      await one.putTicks(schedules[count] ?? '', [-10, 90_000_000], { key })
      await one.advance()
      return one.claimOne(`dying ${count}`)
    }
    await work({ one, other, elapse, interrupt, claimNext, confirmAgain })
    for (const { store } of [one, other]) await store.close()
    await redis.close()
  }

  it('that stops between any two steps, for longer than its lease, leaves the key to its current holder', () =>
    whileSettling(async ({ one, other, elapse, interrupt, claimNext }) => {
      let steps = 0
      for (let reached = true; reached; steps += 1) {
        const run = await claimNext()
        let again: ClaimedRun | undefined
        interrupt(steps + 1, async () => {
          await elapse(10_000)
          await other.store.runs.rescue(100)
          again = await other.claimOne('other')
        })
        await one.settle(run, retryIn(0))
        reached = again !== undefined
        // In the last round nothing was interrupted: the run was settled, and is ready for its retry.
        again ??= await other.claimOne('other')
        const holders = (await other.store.leases.inspect(key.name)).map(({ token }) => token)
        expect([steps, again.id, holders]).toEqual([steps, run.id, [again.token]])
        expect(await other.settle(again)).toBe('settled')
      }
      expect(steps).toBeGreaterThan(3)
    }))

  it.each(['makes a copy wait, and not skip', 'makes a copy wait also when its start is confirmed late'])(
    'that stops before the key is free %s',
    (title) =>
      whileSettling(async ({ one, other, elapse, interrupt, claimNext, confirmAgain }) => {
        const states: string[] = []
        let steps = 0
        for (let stopped = true; stopped; steps += 1) {
          const run = await claimNext()
          interrupt(steps + 1, async () => {
            const isOver = (await other.stateOf(run.id)) === 'succeeded'
            if (title.endsWith('late')) await confirmAgain()
            const copy = await other.enqueue({ key: { ...key, whenBusy: 'skip' } })
            await other.claim('other')
            if (isOver) states.push((await other.stateOf(copy)) ?? 'missing')
            throw new Error('stopped')
          })
          stopped = await one.settle(run).then(
            () => false,
            () => true,
          )
          interrupt(0, async () => {})
          await elapse(10_000)
          await other.store.runs.rescue(100)
          const unfinished = async () => {
            await other.claim('other')
            return (await other.store.runs.list({ limit: 10, states: ['ready', 'waiting', 'running'] })).items
          }
          for (let [rounds, left] = [0, await unfinished()]; left.length > 0; left = await unfinished()) {
            for (const { id, token = 0 } of left) await other.settle({ id, token })
            rounds += 1
            expect([steps, left, rounds < 5]).toEqual([steps, left, true])
          }
        }
        expect(states.length).toBeGreaterThan(1)
        expect(states).not.toContain('skipped busy')
      }),
  )

  it('succeeds when it is repeated, whichever answer was lost, and the key is free', () =>
    whileSettling(async ({ one, other, interrupt, claimNext }) => {
      let steps = 0
      for (let lost = true; lost; steps += 1) {
        const run = await claimNext()
        interrupt(steps + 1, () => Promise.reject(new Error('lost')))
        lost = await one.settle(run).then(
          () => false,
          () => true,
        )
        interrupt(0, async () => {})
        expect([steps, await one.settle(run)]).toEqual([steps, 'settled'])
        expect(await other.store.leases.inspect(key.name)).toEqual([])
      }
      expect(steps).toBeGreaterThan(2)
    }))
})

/** Two processes on one store with several shards; commands of the first can be interrupted. */
interface Interrupted {
  readonly one: Scene
  readonly other: Scene
  readonly key: RunKey
  readonly elapse: (ms: number) => Promise<void>
  readonly interrupt: (count: number, act: () => Promise<void>) => void
  /** Records a tick with this key whose schedule is in another shard, without claiming it. */
  readonly record: () => Promise<string>
}

async function whileClaiming(work: (claiming: Interrupted) => Promise<void>): Promise<void> {
  const key = exclusive('a', { whenBusy: 'skip' })
  const redis = await testRedis()
  let [now, count] = [Date.UTC(2026, 0, 1), 0]
  const elapse = async (ms: number) => {
    now += ms
    await redis.setClock(now)
  }
  await elapse(0)
  const open = async (client: NodeRedis) => {
    const store = redisStore({ client, prefix: redis.prefix, shards: SHARDS }, { handTurned: true })
    await store.open()
    return new Scene({ store, elapse })
  }
  const { client, interrupt } = interruptible(await redis.client())
  const [one, other] = [await open(client), await open(await redis.client())]
  await other.join('other', 3_600_000)
  const record = async () => {
    count += 1
    const schedule = elsewhere(key)[count] ?? ''
    await one.join(`one ${count}`, 10_000)
    await one.putTicks(schedule, [-10, 90_000_000], { key })
    await one.advance()
    return schedule
  }
  await work({ one, other, key, elapse, interrupt, record })
  for (const { store } of [one, other]) await store.close()
  await redis.close()
}

/** Schedules in other shards than a key. */
function elsewhere(key: RunKey): string[] {
  return Array.from({ length: 100 }, (_, at) => `s${at}`).filter(
    (id) => shardOf(id, SHARDS) !== shardOf(key.name, SHARDS),
  )
}

describe('a key that was claimed for a run in another shard', () => {
  it('makes a copy wait rather than skip, when the run turns out to be gone', () =>
    whileClaiming(async ({ one, other, key, interrupt, record }) => {
      let steps = 0
      for (let reached = true; reached; steps += 1) {
        const schedule = await record()
        let copy: string | undefined
        interrupt(steps + 1, async () => {
          await other.store.schedules.remove([schedule])
          copy = await other.enqueue({ key })
          for (const run of await other.claim('other')) await other.settle(run)
        })
        const [run] = await one.claim(`one ${steps + 1}`)
        interrupt(0, async () => {})
        reached = copy !== undefined
        if (run !== undefined) await one.settle(run)
        for (const again of await other.claim('other')) await other.settle(again)
        if (copy === undefined) continue
        const states = run?.schedule === schedule ? ['skipped busy', 'succeeded'] : ['succeeded']
        expect([steps, states.includes(await other.stateOf(copy))]).toEqual([steps, true])
      }
      expect(steps).toBeGreaterThan(4)
    }))

  it('is free at once when the run is taken back after its claimer died before the start', () =>
    whileClaiming(async ({ one, other, key, interrupt, record }) => {
      let steps = 0
      for (let died = true; died; steps += 1) {
        const schedule = await record()
        interrupt(steps + 1, () => Promise.reject(new Error('died')))
        died = await one.claim(`one ${steps + 1}`).then(
          () => false,
          () => true,
        )
        interrupt(0, async () => {})
        const [tick] = await other.runsOf(schedule)
        await other.store.schedules.remove([schedule])
        const copy = await other.enqueue({ key })
        const claimed = (await other.claim('other')).map(({ id }) => id)
        // A run that has started continues until its instance is declared dead.
        const begun = tick?.state === 'running'
        expect([steps, begun || claimed.includes(copy)]).toEqual([steps, true])
        await one.store.instances.leave(`one ${steps + 1}`)
        for (let round = 0; round < 4; round += 1) {
          for (const { id, token } of (await other.store.runs.list({ limit: 100, states: ['running'] })).items) {
            await other.settle({ id, token: token ?? 0 })
          }
          await other.claim('other')
        }
        expect([steps, await other.store.leases.inspect(key.name)]).toEqual([steps, []])
      }
      expect(steps).toBeGreaterThan(4)
    }))

  it('skips a copy as busy only after the run has started', () =>
    whileClaiming(async ({ one, other, key, interrupt, record }) => {
      let [steps, waited] = [0, 0]
      for (let reached = true; reached; steps += 1) {
        const schedule = await record()
        let copy: string | undefined
        interrupt(steps + 1, async () => {
          copy = await other.enqueue({ key })
          await other.claim('other', { jobs: [{ name: 'work', limit: 1 }] })
          if ((await other.stateOf(copy)) === 'waiting key') waited += 1
        })
        const claimed = await one.claim(`one ${steps + 1}`)
        interrupt(0, async () => {})
        reached = copy !== undefined
        await other.claim('other')
        const { items } = await other.store.runs.list({ limit: 100, states: ['running'] })
        expect([steps, items.length]).toEqual([steps, 1])
        const [running] = items
        if (copy !== undefined && claimed.some((run) => run.schedule === schedule)) {
          expect([steps, running?.schedule]).toEqual([steps, schedule])
          expect([steps, await other.stateOf(copy)]).toEqual([steps, 'skipped busy'])
        }
        const owner = running?.instance === 'other' ? other : one
        expect(await owner.settle({ id: running?.id ?? '', token: running?.token ?? 0 })).toBe('settled')
        for (const run of await other.claim('other')) await other.settle(run)
      }
      expect(steps).toBeGreaterThan(4)
      expect(waited).toBeGreaterThan(0)
    }))

  it('is confirmed when a claim is repeated after a lost answer', () =>
    whileClaiming(async ({ one, other, key, interrupt, record }) => {
      let steps = 0
      for (let lost = true; lost; steps += 1) {
        const schedule = await record()
        interrupt(steps + 1, () => Promise.reject(new Error('lost')))
        lost = await one.claim(`one ${steps + 1}`).then(
          () => false,
          () => true,
        )
        interrupt(0, async () => {})
        const [run] = await one.claim(`one ${steps + 1}`, { claim: 1 })
        expect([steps, run?.schedule]).toEqual([steps, schedule])
        const copy = await other.enqueue({ key })
        expect([steps, await other.claim('other')]).toEqual([steps, []])
        expect([steps, await other.stateOf(copy)]).toEqual([steps, 'skipped busy'])
        await one.settle(run ?? { id: '', token: 0 })
      }
      expect(steps).toBeGreaterThan(4)
    }))

  it('refuses no run that checks it, when the run turns out to be gone', () =>
    whileClaiming(async ({ one, other, key, interrupt, record }) => {
      let steps = 0
      for (let reached = true; reached; steps += 1) {
        const schedule = await record()
        let result: { readonly outcome: string } | undefined
        interrupt(steps + 1, async () => {
          await other.store.schedules.remove([schedule])
          result = await other.tryEnqueue({ key, checkKey: true })
        })
        const [run] = await one.claim(`one ${steps + 1}`)
        interrupt(0, async () => {})
        reached = result !== undefined
        if (run !== undefined) await one.settle(run)
        else if (reached) expect([steps, result?.outcome]).toEqual([steps, 'enqueued'])
        for (const again of await other.claim('other')) await other.settle(again)
      }
      expect(steps).toBeGreaterThan(4)
    }))
})

describe('keys of other shards that are checked when a run is enqueued', () => {
  /** All schedules in `elsewhere` are in other shards than this key. */
  const KEY = exclusive('a')
  const elsewhere = Array.from({ length: 200 }, (_, at) => `schedule ${at}`).filter(
    (id) => shardOf(id, SHARDS) !== shardOf(KEY.name, SHARDS),
  )
  const trigger = (schedule: string, over: Partial<NewRun> = {}) =>
    newRun({ origin: 'trigger', schedule, key: KEY, checkKey: true, ...over })

  async function withStores(count: number, work: (stores: Scene[], redis: TestRedis) => Promise<void>): Promise<void> {
    const redis = await testRedis()
    await redis.setClock(Date.UTC(2026, 0, 1))
    const stores: Store[] = []
    for (let at = 0; at < count; at += 1) {
      const store = redisStore(
        { client: await redis.client(), prefix: redis.prefix, shards: SHARDS },
        { handTurned: true },
      )
      await store.open()
      stores.push(store)
    }
    try {
      await work(
        stores.map((store) => new Scene({ store, elapse: async () => {} })),
        redis,
      )
    } finally {
      await Promise.all(stores.map((store) => store.close()))
      await redis.close()
    }
  }

  it('admit as many runs as their limit, however many are enqueued at once', () =>
    withStores(5, async (scenes) => {
      for (const limit of [1, 3]) {
        const key = { ...KEY, limit }
        const asked = elsewhere.slice(limit * 20, limit * 20 + 40).map((id, at) => {
          return (scenes[at % scenes.length] as Scene).store.runs.enqueue([trigger(id, { key })])
        })
        const results = (await Promise.all(asked)).flat()
        const enqueued = results.filter(({ outcome }) => outcome === 'enqueued').map(({ run }) => run)
        expect(enqueued).toHaveLength(limit)
        for (const { outcome, run } of results) {
          if (outcome !== 'enqueued') expect([outcome, enqueued.includes(run)]).toEqual(['busy', true])
        }
        const [scene] = scenes as [Scene]
        const { items } = await scene.store.runs.list({ limit: 100, states: ['ready', 'waiting'] })
        expect(items.map(({ id }) => id).sort()).toEqual([...enqueued].sort())
        expect(await scene.store.runs.available(KEY.name, limit)).toBe(false)
        for (const id of enqueued) await scene.store.runs.cancel(id)
        expect(await scene.store.runs.available(KEY.name, limit)).toBe(true)
      }
    }))

  it('are checked by a later sweep when the caller died in the middle', () =>
    withStores(1, async ([scene], redis) => {
      if (scene === undefined) return
      const client = await redis.client()
      let left = Number.POSITIVE_INFINITY
      const dying: NodeRedis = {
        ...virtualTimeClient(client, async () => {}),
        sendCommand: (args) => {
          left -= 1
          return left < 0 ? Promise.reject(new Error('gone')) : client.sendCommand(args)
        },
      }
      const enqueueAndDie = async (schedule: string) => {
        const store = redisStore({ client: dying, prefix: redis.prefix, shards: SHARDS }, { handTurned: true })
        await store.open()
        // The two commands check the key and enqueue the run. The process dies before it tells the key's shard.
        left = 2
        await expect(store.runs.enqueue([trigger(schedule)])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
        left = Number.POSITIVE_INFINITY
        await store.close()
      }
      const [first = '', second = ''] = elsewhere
      await scene.join()
      await enqueueAndDie(first)
      expect(await scene.claim()).toEqual([])
      await scene.store.runs.rescue(100)
      const run = await scene.claimOne()
      expect(run).toMatchObject({ schedule: first })
      await scene.settle(run)

      await enqueueAndDie(second)
      expect(await scene.runsOf(second)).toHaveLength(1)
      const other = await scene.enqueue({ key: KEY, checkKey: true })
      await scene.store.runs.rescue(100)
      expect(await scene.runsOf(second)).toEqual([])
      expect(ids(await scene.claim())).toEqual([other])
    }))

  it('no longer count a waiting run that is gone, even if its end was not reported', async () => {
    const opened = await freshRedis(SHARDS)
    await opened.store.open()
    const scene = new Scene(opened)
    const schedule = elsewhere[0] ?? ''
    await scene.putTicks(schedule, [-10, 90_000_000])
    await scene.advance()
    const waiting = await scene.enqueue(trigger(schedule, { overlap: 'queue-all' }))
    expect(await scene.stateOf(waiting)).toBe('waiting overlap')
    expect(await scene.store.runs.available(KEY.name, 1)).toBe(false)
    const admin = createClient({ url: await serverUrl('redis') })
    await admin.connect()
    // Simulates a failover that lost the last writes of one shard.
    const home = shardKeys(opened.prefix, SHARDS)[shardOf(schedule, SHARDS)] ?? ''
    for (const set of ['runs', 'ticket-sent', 'ticket-wanted']) await admin.del(`${home}${set}`)
    admin.destroy()
    await scene.elapse(121_000)
    await scene.store.runs.rescue(100)
    expect(await scene.store.runs.available(KEY.name, 1)).toBe(true)
    await opened.store.close()
    await opened.close()
  })
})

describe('shards', () => {
  it('have evenly distributed slots', () => {
    const keys = shardKeys('belfry:', 12)
    expect(new Set(keys).size).toBe(12)
    expect(keys[0]).toBe('belfry:{0}:')
  })

  it('share names evenly', () => {
    const counts = new Array<number>(12).fill(0)
    for (let at = 0; at < 120_000; at += 1) {
      const shard = shardOf(`schedule/${String(at).padStart(15, '0')}`, 12)
      counts[shard] = (counts[shard] ?? 0) + 1
    }
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500)
  })

  it('with different clocks each say by their own clock when they are due next', () => {
    const now = 1_000_000
    expect(
      firstNext(now, [
        { now, next: now + 900 },
        { now: now - 5_000, next: now - 4_500 },
      ]),
    ).toBe(now + 500)
    // A difference of 3 ms comes from calling the shards one after another. It counts as the same clock.
    expect(
      firstNext(now, [
        { now, next: now + 900 },
        { now: now - 3, next: now + 400 },
      ]),
    ).toBe(now + 400)
    expect(firstNext(now, [{ now, next: undefined }])).toBe(undefined)
  })

  it('keep their initial number', async () => {
    const redis = await testRedis()
    const open = async (shards?: number) => {
      const options = {
        client: await redis.client(),
        prefix: redis.prefix,
        ...(shards === undefined ? {} : { shards }),
      }
      const store = redisStore(options, {})
      await store.open()
      await store.close()
    }
    await open(3)
    await open()
    await expect(open(4)).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /made with 3 shards/ })
    await redis.close()
  })
})
