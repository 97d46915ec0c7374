/** The store on a real cluster of three masters with a replica each, in real time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createCluster } from '@redis/client'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { shardOf } from '../../src/stores/redis/cluster/shards.js'
import { slotOfKey } from '../../src/stores/redis/cluster/slots.js'
import { type IoRedis, type NodeRedisCluster, type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { firstShard } from '../../src/stores/redis/schema/keys.js'
import { definition, key, newRun, Scene } from '../../src/testing/contract/scene.js'
import { startRedisCluster, tellRedis, untilClusterReady } from '../servers/redis.js'
import { serverUrl } from '../servers/server-url.js'

let made = 0

async function withStore(options: RedisOptions, work: (scene: Scene, store: Store) => Promise<void>): Promise<void> {
  made += 1
  const store = redis({ prefix: `k${process.pid}.${Date.now().toString(36)}.${made}:`, ...options })
  await store.open()
  try {
    await work(new Scene({ store, elapse: sleep }), store)
  } finally {
    await store.close()
  }
}

async function nodes(): Promise<string[]> {
  return (await serverUrl('redis-cluster')).split(',')
}

/** Uses the store for schedules with keys in other shards, for enqueued runs, and for a lock. */
async function exercise({
  join,
  put,
  putTicks,
  advance,
  claim,
  settle,
  enqueue,
  acquire,
  store,
}: Scene): Promise<void> {
  await join()
  for (let at = 0; at < 20; at += 1) await putTicks(`s${at}`, [-10, 90_000_000], { key: key(`k${at % 5}`) })
  for (let at = 0; at < 20; at += 1) await enqueue({ payload: at })
  await put('later')
  expect(await advance()).toMatchObject({ recorded: 20 })
  let done = 0
  for (let round = 0; done < 40 && round < 60; round += 1) {
    const claimed = await claim()
    const keys = claimed.flatMap((run) => (run.key === undefined ? [] : [run.key.name]))
    expect(new Set(keys).size).toBe(keys.length)
    for (const run of claimed) expect(await settle(run)).toBe('settled')
    done += claimed.length
  }
  expect(done).toBe(40)
  expect((await store.runs.list({ limit: 100, states: ['succeeded'] })).items).toHaveLength(40)
  expect((await store.schedules.list({ limit: 100 })).items.map(({ id }) => id)).toHaveLength(21)
  const lock = await acquire('lock', 'holder')
  expect(await store.leases.inspect('lock')).toEqual([lock])
}

describe('Redis Cluster', () => {
  it('is reached by its nodes’ URLs', { timeout: 90_000 }, async () => {
    await withStore({ nodes: await nodes() }, exercise)
  })

  it('can be reached by a cluster client of @redis/client or ioredis', { timeout: 90_000 }, async () => {
    const urls = await nodes()
    const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })) })
    await cluster.connect()
    await withStore({ client: cluster as unknown as NodeRedisCluster, waitReplicas: 1 }, exercise)
    cluster.destroy()
    const other = new Cluster(urls)
    await withStore({ client: other as unknown as IoRedis }, exercise)
    other.disconnect()
  })

  it('distributes the schedules over its masters, within 15 %', { timeout: 90_000 }, async () => {
    const urls = await nodes()
    const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })) })
    await cluster.connect()
    const prefix = `share${process.pid}.${Date.now().toString(36)}:`
    await withStore({ client: cluster as unknown as NodeRedisCluster, prefix }, async (_, store) => {
      const all = Array.from({ length: 6_000 }, (__, at) => ({ id: `schedule/${at}`, definition: definition() }))
      for (let first = 0; first < all.length; first += 1_000) await store.schedules.put(all.slice(first, first + 1_000))
    })
    const counts = await Promise.all(
      cluster.masters.map(async (master) => {
        const client = await cluster.nodeClient(master)
        let count = 0
        for (const found of await client.keys(`${prefix}*:schedules`)) count += await client.hLen(found)
        return count
      }),
    )
    cluster.destroy()
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6_000)
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(300)
  })
})

describe('Redis Cluster, when masters fail', () => {
  let own: Awaited<ReturnType<typeof startRedisCluster>>

  beforeAll(async () => {
    own = await startRedisCluster()
  }, 60_000)

  afterAll(() => own.stop())

  it('does nothing in a shard while its slot is moved to another master, and then continues there', {
    timeout: 60_000,
  }, async () => {
    const prefix = 'moved:'
    const slot = String(slotOfKey(firstShard(prefix)))
    // This slot is in the last third, which the third master of a new cluster serves.
    const [from, to] = [own.nodes[2]?.url ?? '', own.nodes[0]?.url ?? '']
    const [fromId, toId] = [await tellRedis(from, 'CLUSTER', 'MYID'), await tellRedis(to, 'CLUSTER', 'MYID')].map(
      String,
    )
    const options = { nodes: own.url.split(','), prefix, timeoutMs: 2_000 }
    const patient = redis({ ...options, waitReplicas: 1 })
    await patient.open()
    await withStore(options, async (scene) => {
      const name = Array.from({ length: 100 }, (_, at) => `lock ${at}`).find((each) => shardOf(each, 12) === 0) ?? ''
      const { token } = await scene.acquire(name, 'holder')
      await tellRedis(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId ?? '')
      await tellRedis(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId ?? '')
      // While keys are moved, each master has some of them. A script that found only those would take a held lock as
      // free.
      await expect(scene.tryAcquire(name, 'rival')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
      const keys = (await tellRedis(from, 'CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[]
      await tellRedis(from, 'MIGRATE', '127.0.0.1', new URL(to).port, '', '0', '5000', 'KEYS', ...keys)
      await expect(scene.tryAcquire(name, 'rival')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
      for (const url of [to, from]) await tellRedis(url, 'CLUSTER', 'SETSLOT', slot, 'NODE', toId ?? '')
      expect(await scene.tryAcquire(name, 'rival')).toMatchObject({ acquired: false })
      expect(await scene.store.leases.inspect(name)).toMatchObject([{ holder: 'holder', token }])
      expect(await patient.leases.release({ name, holder: 'holder' })).toBe(true)
    })
    await patient.close()
  })

  it('with waitReplicas, counts only writes that a replica has', { timeout: 120_000 }, async () => {
    await withStore({ nodes: own.url.split(','), waitReplicas: 1, timeoutMs: 2_000 }, async (scene, store) => {
      // Replicas that have just started to follow may still be synchronising.
      await vi.waitFor(() => scene.join('one', 600_000), { timeout: 20_000 })
      const before: string[] = []
      for (let at = 0; at < 24; at += 1) before.push(await scene.enqueue())
      await own.nodes[0]?.crash()
      const listed = () =>
        store.runs.list({ limit: 100 }).then(
          ({ items }) => items.map(({ id }) => id),
          () => [],
        )
      await expect.poll(listed, { timeout: 60_000, interval: 200 }).toEqual(expect.arrayContaining(before))
      // The replica of the crashed master was promoted and has no replica itself, so it cannot confirm writes. The
      // other shards work.
      const attempts = Array.from({ length: 12 }, () => store.runs.enqueue([newRun()]))
      const results = await Promise.allSettled(attempts)
      const refused = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
      expect(refused.length).toBeGreaterThan(0)
      expect(refused.length).toBeLessThan(12)
      for (const reason of refused) expect(reason).toMatchObject({ code: 'STORE_UNREACHABLE' })
      await own.nodes[0]?.restart()
      const all = () =>
        Promise.all(Array.from({ length: 12 }, () => store.runs.enqueue([newRun()]))).then(
          () => true,
          () => false,
        )
      await expect.poll(all, { timeout: 60_000, interval: 200 }).toBe(true)
      await untilClusterReady(own.nodes)
    })
  })

  it('continues when a master is lost and its replica was promoted', { timeout: 120_000 }, async () => {
    const urls = own.url.split(',')
    const brought = new Cluster(urls)
    const options = { prefix: 'failover:', timeoutMs: 2_000 }
    const late = redis({ ...options, nodes: urls })
    const stores = [redis({ ...options, nodes: urls }), redis({ ...options, client: brought as unknown as IoRedis })]
    try {
      await Promise.all(stores.map((store) => store.open()))
      const [scene, other] = stores.map((store) => new Scene({ store, elapse: sleep })) as [Scene, Scene]
      const before: string[] = []
      for (let at = 0; at < 24; at += 1) before.push(await scene.enqueue())
      const names = Array.from({ length: 12 }, (_, at) => `lock ${at}`)
      const tokens = new Map<string, number>()
      const lockAll = async ({ acquire, store }: Scene) => {
        for (const name of names) {
          const { token } = await acquire(name, 'me')
          expect(token).toBeGreaterThan(tokens.get(name) ?? 0)
          tokens.set(name, token)
          await store.leases.release({ name, holder: 'me' })
        }
      }
      await lockAll(scene)
      await tellRedis(urls[1] ?? '', 'WAIT', '1', '5000')
      await own.nodes[1]?.crash()
      // Calls while no master serves the slots are refused as unreachable, and can be repeated.
      await expect(late.open()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
      const wakes: string[] = []
      for (const each of [scene, other]) {
        each.store.subscribe((wake) => wakes.push(wake))
        await vi.waitFor(() => lockAll(each), { timeout: 60_000, interval: 200 })
        const { items } = await each.store.runs.list({ limit: 100 })
        const known = new Set(items.map(({ id }) => id))
        expect(before.filter((id) => !known.has(id))).toEqual([])
      }
      await vi.waitFor(() => late.open(), { timeout: 60_000, interval: 200 })
      await lockAll(new Scene({ store: late, elapse: sleep }))
      wakes.length = 0
      // Hints arrive again, although the stores may have subscribed on the crashed node.
      const hinted = async () => {
        await late.runs.enqueue([newRun()])
        await sleep(100)
        return wakes.includes('runs')
      }
      await expect.poll(hinted, { timeout: 60_000 }).toBe(true)
    } finally {
      await Promise.all([...stores, late].map((store) => store.close()))
      brought.disconnect()
    }
  })
})
