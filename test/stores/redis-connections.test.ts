/** Connections that break and recover, with every kind of client, on real servers and in real time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { type Clock, setAlarm, systemClock } from '../../src/core/clock.js'
import type { Store } from '../../src/core/store.js'
import { type IoRedis, type NodeRedis, redis } from '../../src/stores/redis/index.js'
import { newRun, Scene } from '../../src/testing/contract/scene.js'
import { failoverAddress } from '../servers/failover-address.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'
import { lossyProxy } from './lossy-proxy.js'

const TIMEOUT_MS = 2_000

/** Clients with default options and no error listener: an error that the store misses would end the process. */
const CLIENTS: Readonly<
  Record<string, (url: string, timeoutMs?: number, clock?: Clock) => { readonly store: Store; end(): void }>
> = {
  'a URL': (url, timeoutMs = TIMEOUT_MS, clock = systemClock) => ({
    store: redis({ url, timeoutMs, clock }),
    end: () => {},
  }),
  'a client of @redis/client': (url, timeoutMs = TIMEOUT_MS, clock = systemClock) => {
    const client = createClient({ url })
    const store = redis({ client: client as unknown as NodeRedis, timeoutMs, clock })
    return { store, end: () => client.destroy() }
  },
  'a client of ioredis': (url, timeoutMs = TIMEOUT_MS, clock = systemClock) => {
    const client = new Redis(url)
    const store = redis({ client: client as unknown as IoRedis, timeoutMs, clock })
    return { store, end: () => client.disconnect() }
  },
}

describe.each(Object.entries(CLIENTS))('with %s', (name, connect) => {
  async function withServer(work: (server: OwnServer, store: Store) => Promise<void>): Promise<void> {
    const server = await startOwnRedis(['--appendfsync', 'always'])
    const { store, end } = connect(server.url)
    try {
      await store.open()
      await work(server, store)
    } finally {
      await store.close()
      end()
      await server.stop()
    }
  }

  const answers = (store: Store) =>
    store.now().then(
      () => true,
      () => false,
    )

  it('a crashed server is reported in time, and used again after its recovery', { timeout: 60_000 }, () =>
    withServer(async (server, store) => {
      await server.crash()
      for (let tries = 0; tries < 2; tries += 1) {
        const began = performance.now()
        await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
        expect(performance.now() - began).toBeLessThan(TIMEOUT_MS * 3)
      }
      await server.restart()
      await expect.poll(() => answers(store), { timeout: 20_000 }).toBe(true)
      const enqueued = await new Scene({ store, elapse: sleep }).enqueue()
      const { items } = await store.runs.list({ limit: 10 })
      expect(items.map(({ id }) => id)).toContain(enqueued)
      // A failed call is not executed later, unless the caller's client queues commands while offline.
      if (name === 'a URL') expect(items).toHaveLength(1)
    }),
  )

  it('hints arrive again after their connection was lost, and missed changes are read', { timeout: 60_000 }, () =>
    withServer(async (server, store) => {
      const wakes: string[] = []
      store.subscribe((wake) => wakes.push(wake))
      const other = redis({ url: server.url })
      await other.open()
      await other.runs.enqueue([newRun()])
      await expect.poll(() => wakes, { timeout: 20_000 }).toContain('runs')
      await tellRedis(server.url, 'CLIENT', 'KILL', 'TYPE', 'PUBSUB')
      wakes.length = 0
      // The store sends every kind of hint, because it cannot know which ones it missed.
      await expect.poll(() => new Set(wakes).size, { timeout: 20_000 }).toBe(5)
      wakes.length = 0
      await other.runs.enqueue([newRun()])
      await expect.poll(() => wakes, { timeout: 20_000 }).toContain('runs')
      await other.close()
    }),
  )

  it('an instance logs one outage and one recovery, and continues', {
    timeout: 60_000,
  }, async () => {
    const server = await startOwnRedis(['--appendfsync', 'always'])
    const { store, end } = connect(server.url)
    const said: string[] = []
    const say = (level: string) => (_: object, message: string) => void said.push(`${level} ${message}`)
    const logger = { debug() {}, info: say('info'), warn: say('warn'), error: say('error') }
    const belfry = createBelfry({ store, lease: '1s', poll: '50ms', logger })
    let ran = 0
    belfry.job('work', {
      run: () => {
        ran += 1
      },
    })
    await belfry.start()
    await belfry.schedules.put('s', { every: '1s', job: 'work' })
    await expect.poll(() => ran, { timeout: 20_000 }).toBeGreaterThan(0)
    await server.crash()
    await sleep(2_500)
    await server.restart()
    const before = ran
    await expect.poll(() => ran, { timeout: 20_000 }).toBeGreaterThan(before)
    const count = (words: string) => said.filter((line) => line.includes(words)).length
    await expect.poll(() => count('store answers again'), { timeout: 20_000 }).toBe(1)
    await belfry.stop()
    end()
    await server.stop()
    expect(count('store unreachable')).toBe(1)
    expect(count('store answers again')).toBe(1)
    // Apart from these lines, the instance logs the loss of its lease if a run was in progress, and little more.
    expect(said.length).toBeLessThan(10)
  })
})

it('a command without an answer fails after a third of the lease', { timeout: 60_000 }, async () => {
  const server = await startOwnRedis()
  const proxy = await lossyProxy(new URL(server.url))
  const store = redis({ url: proxy.url })
  await store.open()
  await store.instances.join({ id: 'a', host: 'host', pid: 1, zoneData: '2026a', jobs: [] }, 3_000)
  proxy.swallow('answers')
  await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({
    code: 'STORE_UNREACHABLE',
    message: expect.stringContaining('has not answered for 1000 ms'),
  })
  await store.close()
  proxy.close()
  await server.stop()
})

it('commands are not late because the event loop is blocked again and again', { timeout: 60_000 }, async () => {
  const server = await startOwnRedis()
  // The commands pass through this process, so the server gets them only when the loop is free again.
  const address = await failoverAddress(server.url)
  const store = redis({ url: address.url })
  await store.open()
  await store.instances.join({ id: 'a', host: 'host', pid: 1, zoneData: '2026a', jobs: [] }, 3_000)
  for (let times = 0; times < 4; times += 1) {
    const answer = store.now()
    block(1_500)
    expect(await answer).toBeGreaterThan(0)
  }
  await store.close()
  await address.close()
  await server.stop()
})

function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

describe('servers whose roles change', () => {
  let servers: OwnServer[]

  beforeAll(async () => {
    servers = await Promise.all([startOwnRedis(), startOwnRedis()])
  })

  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  const urls = () => servers.map(({ url }) => url) as [string, string]

  it.each(Object.entries(CLIENTS))(
    'are found with %s: one disappears without closing connections',
    { timeout: 60_000 },
    async (_, connect) => {
      const [one, other] = urls()
      const address = await failoverAddress(one)
      const { store, end } = connect(address.url)
      await store.open()
      const wakes: string[] = []
      store.subscribe((wake) => wakes.push(wake))
      address.vanish(other)
      await expect(store.now()).rejects.toMatchObject({
        code: 'STORE_UNREACHABLE',
        message: expect.stringContaining('has not answered for 2000 ms'),
      })
      await expect.poll(() => store.now().then(Number, () => 0), { timeout: 20_000, interval: 100 }).toBeGreaterThan(0)
      // The subscribing connection has moved to the other server, too.
      await expect.poll(() => new Set(wakes).size, { timeout: 20_000 }).toBe(5)
      await store.close()
      end()
      await address.close()
    },
  )

  it.each(Object.entries(CLIENTS))(
    'are found with %s: one becomes a replica',
    { timeout: 60_000 },
    async (_, connect) => {
      const [one, other] = urls()
      const address = await failoverAddress(one)
      const { store, end } = connect(address.url)
      await store.open()
      await tellRedis(one, 'REPLICAOF', '127.0.0.1', new URL(other).port)
      address.redirectNew(other)
      await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
      const enqueued = () => store.runs.enqueue([newRun()]).then(([result]) => result?.outcome, String)
      await expect.poll(enqueued, { timeout: 20_000, interval: 100 }).toBe('enqueued')
      await store.close()
      end()
      await address.close()
      await tellRedis(one, 'REPLICAOF', 'NO', 'ONE')
    },
  )
})

describe('a connection that only listens', () => {
  let server: OwnServer

  beforeAll(async () => {
    server = await startOwnRedis()
  })

  afterAll(() => server.stop())

  it.each(Object.keys(CLIENTS))(
    'is replaced with %s when nothing arrives over it any more',
    { timeout: 60_000 },
    async (name) => {
      const proxy = await lossyProxy(new URL(server.url))
      // Probes every second instead of every ten.
      const clock: Clock = {
        ...systemClock,
        after: (delayMs, callback) => systemClock.after(delayMs / 10, callback),
        alarm: (delayMs, callback) => setAlarm(systemClock, delayMs / 10, callback),
      }
      const { store, end } = CLIENTS[name]?.(proxy.url, 20_000, clock) ?? {}
      if (store === undefined || end === undefined) throw new Error('no such client')
      const wakes: string[] = []
      store.subscribe((wake) => wakes.push(wake))
      await store.open()
      proxy.swallow('answers', 'subscribe')
      // After a gap the store sends every hint.
      await expect.poll(() => new Set(wakes).size, { timeout: 20_000 }).toBe(5)
      wakes.length = 0
      const other = redis({ url: server.url })
      await other.open()
      await other.runs.enqueue([newRun()])
      await expect.poll(() => wakes, { timeout: 20_000 }).toContain('runs')
      await Promise.all([store.close(), other.close()])
      end()
      proxy.close()
    },
  )
})
