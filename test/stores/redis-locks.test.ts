/** Locks on Redis: which waiters receive hints, how many scripts run, and what remains stored of released locks. */
import { describe, expect, it } from 'vitest'
import type { AcquireRequest } from '../../src/core/locks/lease.js'
import type { Store } from '../../src/core/store.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import { testRedis } from '../servers/test-redis.js'

const TTL_MS = 60_000

function ask(name: string, holder: string, waits = false): AcquireRequest {
  return { name, holder, ttlMs: TTL_MS, permits: 1, floor: 0, ...(waits ? { waitMs: TTL_MS } : {}) }
}

/** Two processes on one store; counts the scripts of the first. */
async function twoProcesses(work: (one: Store, other: Store, scripts: () => number) => Promise<void>): Promise<void> {
  const server = await testRedis()
  let scripts = 0
  const client = await server.client()
  const counted: NodeRedis = Object.create(client, {
    sendCommand: {
      value: (args: readonly string[]) => {
        if (args[0] === 'EVALSHA') scripts += 1
        return client.sendCommand(args)
      },
    },
    duplicate: { value: () => client.duplicate() },
    isOpen: { value: true },
  })
  const { prefix } = server
  const one = redisStore({ client: counted, prefix }, {})
  const other = redisStore({ client: await server.client(), prefix }, {})
  await one.open()
  await other.open()
  await work(one, other, () => scripts)
  await one.close()
  await other.close()
  await server.close()
}

describe('locks on Redis', () => {
  it('that are handed on send a hint to the next waiter only', async () => {
    await twoProcesses(async (one, other) => {
      const told: string[] = []
      for (const store of [one, other]) {
        store.subscribe((wake, holder) => {
          if (wake === 'leases') told.push(holder ?? 'everybody')
        })
      }
      await one.leases.acquire(ask('l', 'first'))
      expect(await other.leases.acquire(ask('l', 'second', true))).toMatchObject({ acquired: false })
      expect(await one.leases.acquire(ask('l', 'third', true))).toMatchObject({ acquired: false })
      await one.leases.release({ name: 'l', holder: 'first' })
      await expect.poll(() => told).toEqual(['second', 'second'])
      expect(await other.leases.acquire(ask('l', 'second', true))).toMatchObject({ acquired: true })
      await other.leases.release({ name: 'l', holder: 'second' })
      await expect.poll(() => told).toEqual(['second', 'second', 'third', 'third'])
    })
  })

  it('are acquired and released by few scripts when many callers ask at once', async () => {
    await twoProcesses(async (one, _, scripts) => {
      const names = Array.from({ length: 100 }, (_each, at) => `lock ${at}`)
      // Loads the scripts into the server first.
      await one.leases.acquire(ask('l', 'a'))
      await one.leases.release({ name: 'l', holder: 'a' })
      const before = scripts()
      const taken = await Promise.all(names.map((name) => one.leases.acquire(ask(name, name))))
      expect(taken.every(({ acquired }) => acquired)).toBe(true)
      expect(await Promise.all(names.map((name) => one.leases.release({ name, holder: name })))).not.toContain(false)
      expect(scripts() - before).toBeLessThanOrEqual(20)
    })
  })

  it('leave nothing behind once their names have expired, however many there were', async () => {
    const server = await testRedis()
    const client = await server.client()
    const store = redisStore({ client, prefix: server.prefix }, {})
    await store.open()
    await store.leases.acquire(ask('name 1500 is held', 'a'))
    const index = `${server.prefix}{0}:lock-names`
    const expired = Array.from({ length: 3_000 }, (_, at) => ['0', `name ${at}`]).flat()
    await client.sendCommand(['ZADD', index, ...expired])
    const prune = () => store.runs.prune({ maxAgeMs: 1e9, maxRuns: 1e6, leaseAgeMs: 1e9, limit: 1_000 })
    // A step that reaches its limit makes the pruner begin the next step at once.
    for (let step = 0; step < 3; step += 1) expect(await prune()).toBe(1_000)
    expect(await prune()).toBe(0)
    expect(await client.sendCommand(['ZRANGE', index, '0', '-1'])).toEqual(['name 1500 is held'])
    await store.close()
    await server.close()
  })

  it('have one holder when many callers ask for the same one', async () => {
    await twoProcesses(async (one, other) => {
      const asked = Array.from({ length: 60 }, (_, at) => (at % 2 ? one : other).leases.acquire(ask('l', `h${at}`)))
      const taken = (await Promise.all(asked)).filter(({ acquired }) => acquired)
      expect(taken).toHaveLength(1)
    })
  })

  it('are released although they were extended or waited for in the meantime', async () => {
    await twoProcesses(async (one, other) => {
      const first = await one.leases.acquire(ask('l', 'a'))
      const token = first.acquired ? first.lease.token : 0
      await one.leases.renew([{ name: 'l', holder: 'a', token, ttlMs: 2 * TTL_MS }])
      expect(await one.leases.release({ name: 'l', holder: 'a' })).toBe(true)
      await one.leases.acquire(ask('l', 'b'))
      await other.leases.acquire(ask('l', 'c', true))
      expect(await one.leases.release({ name: 'l', holder: 'b' })).toBe(true)
      expect(await one.leases.inspect('l')).toMatchObject([{ holder: 'c' }])
    })
  })

  it('are not released by a holder that has lost them, with any old token', async () => {
    await twoProcesses(async (one, other) => {
      const first = await one.leases.acquire(ask('l', 'a'))
      await other.leases.reset('l')
      const second = await other.leases.acquire(ask('l', 'b'))
      expect(await one.leases.release({ name: 'l', holder: 'a' })).toBe(false)
      expect(await one.leases.inspect('l')).toMatchObject([{ holder: 'b' }])
      const tokens = [first, second].map((each) => (each.acquired ? each.lease.token : 0))
      expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0)
    })
  })

  it('have tokens above the highest floor of concurrent callers, and above the last token', async () => {
    await twoProcesses(async (one) => {
      const floor = Date.now() * 1_000 + 10 ** 12
      const asked = [ask('a', 'a'), { ...ask('b', 'b'), floor }]
      const taken = await Promise.all(asked.map((request) => one.leases.acquire(request)))
      expect(taken[1]).toMatchObject({ acquired: true, lease: { token: floor } })
      await one.leases.release({ name: 'b', holder: 'b' })
      const again = await one.leases.acquire(ask('b', 'c'))
      expect(again).toMatchObject({ acquired: true, lease: { token: floor + 1 } })
    })
  })
})
