import { once } from 'node:events'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { plan } from '../../src/core/schedules/plan.js'
import type { Store } from '../../src/core/store.js'
import { type IoRedis, type NodeRedis, type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { key, newRun, Scene } from '../../src/testing/contract/scene.js'
import { startOwnRedis } from '../servers/redis.js'
import { serverUrl } from '../servers/server-url.js'

let made = 0

function freshPrefix(): string {
  made += 1
  return `c${process.pid}.${Date.now().toString(36)}.${made}:`
}

/** Uses the store once for a tick, a run, a lock and a hint. */
async function exercise(store: Store): Promise<void> {
  const scene = new Scene({ store, elapse: async () => {} })
  const wakes: string[] = []
  store.subscribe((wake) => wakes.push(wake))
  await scene.join()
  await scene.putTicks('a schedule/ü%', [-10, 90_000_000], { payload: { text: 'zwei\nZeilen' } })
  expect(await store.schedules.advance({ limit: 10, lookaheadMs: 0, plan })).toMatchObject({ recorded: 1 })
  const run = await scene.claimOne()
  expect(run).toMatchObject({ schedule: 'a schedule/ü%', payload: { text: 'zwei\nZeilen' } })
  expect(await scene.settle(run)).toBe('settled')
  const lock = await scene.acquire('a name', 'a holder')
  expect(await store.leases.inspect('a name')).toEqual([lock])
  await scene.tryAcquire('a name', 'another', { waitMs: 60_000 })
  expect(await store.leases.release({ name: 'a name', holder: 'a holder' })).toBe(true)
  await expect.poll(() => wakes).toContain('leases')
}

async function withStore(options: RedisOptions, work: (store: Store) => Promise<void>): Promise<void> {
  const store = redis({ prefix: freshPrefix(), ...options })
  await store.open()
  try {
    await work(store)
  } finally {
    await store.close()
  }
}

describe('clients of Redis', () => {
  it('may be the caller’s from @redis/client, in either protocol, and stay open', async () => {
    for (const RESP of [2, 3] as const) {
      const client = createClient({ url: await serverUrl('redis'), RESP })
      await client.connect()
      await withStore({ client: client as unknown as NodeRedis }, exercise)
      expect(await client.ping()).toBe('PONG')
      client.destroy()
    }
  })

  it('may be the caller’s from ioredis, and stay open', async () => {
    const client = new Redis(await serverUrl('redis'))
    await withStore({ client: client as unknown as IoRedis }, exercise)
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  it('may have their own prefix, numbers as strings, and a short timeout', async () => {
    const options = { keyPrefix: 'app:', stringNumbers: true, enableOfflineQueue: false }
    const client = new Redis(await serverUrl('redis'), options)
    await once(client, 'ready')
    await withStore({ client: client as unknown as IoRedis }, exercise)
    client.disconnect()
  })

  it('are created from a URL', async () => {
    await withStore({ url: await serverUrl('redis') }, exercise)
  })

  it('receive hints of other processes', async () => {
    const [url, prefix] = [await serverUrl('redis'), freshPrefix()]
    await withStore({ url, prefix }, (one) =>
      withStore({ url, prefix }, async (other) => {
        const wakes: string[] = []
        one.subscribe((wake) => wakes.push(wake))
        await other.runs.enqueue([newRun()])
        await expect.poll(() => wakes).toContain('runs')
      }),
    )
  })

  it('work after scripts were flushed', async () => {
    const admin = createClient({ url: await serverUrl('redis') })
    await admin.connect()
    await withStore({ url: await serverUrl('redis') }, async (store) => {
      await store.runs.enqueue([newRun()])
      await admin.scriptFlush()
      await store.runs.enqueue([newRun()])
      expect((await store.runs.list({ limit: 10 })).items).toHaveLength(2)
    })
    admin.destroy()
  })
})

describe('servers', () => {
  it('are reported as unreachable after they went down', {
    timeout: 60_000,
  }, async () => {
    const own = await startOwnRedis()
    const store = redis({ url: own.url, timeoutMs: 1_000 })
    await store.open()
    await own.stop()
    await expect(store.now()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    await store.close()
  })

  it('may crash and restart: no logged write is lost, and no process has to restart', {
    timeout: 60_000,
  }, async () => {
    const own = await startOwnRedis(['--appendfsync', 'always'])
    const store = redis({ url: own.url, timeoutMs: 1_000 })
    await store.open()
    const scene = new Scene({ store, elapse: async () => {} })
    await scene.join('one', 600_000)
    const [first, second] = [await scene.enqueue({ key: key('k') }), await scene.enqueue({ key: key('k') })]
    const run = await scene.claimOne()
    const lock = await scene.acquire('lock', 'holder')
    await own.crash()
    await expect(store.now()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    await own.restart()
    const answers = () =>
      store.now().then(
        () => true,
        () => false,
      )
    await expect.poll(answers, { timeout: 20_000 }).toBe(true)
    expect(await store.leases.inspect('lock')).toEqual([lock])
    expect(run.id).toBe(first)
    expect(await scene.settle(run)).toBe('settled')
    const next = await scene.claimOne()
    expect(next.id).toBe(second)
    expect(next.token).toBeGreaterThan(run.token)
    await store.close()
    await own.stop()
  })

  it('are waited for when a write must reach replicas', { timeout: 60_000 }, async () => {
    const primary = await startOwnRedis(['--repl-diskless-sync-delay', '0'])
    const store = redis({ url: primary.url, waitReplicas: 1, timeoutMs: 2_000 })
    await store.open()
    const enqueue = () => store.runs.enqueue([newRun()]).then(([result]) => result?.outcome, String)
    expect(await enqueue()).toMatch(/0 of 1 replicas/)
    // Without an append-only file, because a replica that is writing its first one cannot be stopped.
    const replica = await startOwnRedis(['--appendonly', 'no', '--replicaof', '127.0.0.1', new URL(primary.url).port])
    await expect.poll(enqueue, { timeout: 20_000, interval: 100 }).toBe('enqueued')
    await store.close()
    await replica.stop()
    await primary.stop()
  })
})
