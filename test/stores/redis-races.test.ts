/** Changes between two scripts of one operation. The planner or the client of the test makes them at that moment. */
import { expect, it } from 'vitest'
import { plan } from '../../src/core/schedules/plan.js'
import type { Planner, Store } from '../../src/core/store.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import { recordTicksScript } from '../../src/stores/redis/schedules/advance.js'
import { Scene } from '../../src/testing/contract/scene.js'
import { testRedis } from '../servers/test-redis.js'

/** Two processes on one store, at a fixed instant. */
async function twoHandles(work: (one: Scene, other: Scene) => Promise<void>): Promise<void> {
  const server = await testRedis()
  await server.setClock(Date.UTC(2026, 0, 1))
  const stores: Store[] = []
  for (let count = 0; count < 2; count += 1) {
    const client = await server.client()
    stores.push(redisStore({ client, prefix: server.prefix }, { handTurned: true }))
  }
  await Promise.all(stores.map((store) => store.open()))
  const [one, other] = stores.map((store) => new Scene({ store, elapse: async () => {} }))
  if (one !== undefined && other !== undefined) await work(one, other)
  await Promise.all(stores.map((store) => store.close()))
  await server.close()
}

/** Advances, and starts an operation between the read and the write. */
async function advanceWhile(scene: Scene, act: () => Promise<unknown>): Promise<number> {
  let acted: Promise<unknown> | undefined
  const interrupted: Planner = (...args) => {
    acted ??= act()
    return plan(...args)
  }
  const { store } = scene
  // The planner is synchronous and cannot wait, so the operation runs while this advance writes its plan.
  const { recorded } = await store.schedules.advance({ limit: 10, lookaheadMs: 0, plan: interrupted })
  await acted
  return recorded
}

it('a plan of a schedule that was changed meanwhile is not written', async () => {
  await twoHandles(async (one, other) => {
    const [tick = 0] = await one.putTicks('a', [-10, 90_000_000])
    for (const change of [
      () => other.store.schedules.pause('a', undefined),
      () => other.store.schedules.resume('a'),
      () => other.store.schedules.remove(['a']),
    ]) {
      await advanceWhile(one, change)
    }
    expect(await one.advance()).toMatchObject({ recorded: 0 })
    const ticks = (await one.runsOf('a')).map((run) => [run.tick, run.state])
    expect(ticks.length === 0 || (ticks.length === 1 && ticks[0]?.[0] === tick && ticks[0]?.[1] === 'skipped')).toBe(
      true,
    )
  })
})

/** Two processes on one store with three due schedules; an operation is performed before the first writes its plan. */
async function threeDue(act: (other: Scene) => Promise<unknown>, work: (one: Scene, other: Scene) => Promise<void>) {
  const server = await testRedis()
  const start = Date.UTC(2026, 0, 1)
  await server.setClock(start)
  const open = async (client: NodeRedis) => {
    const store = redisStore({ client, prefix: server.prefix }, { handTurned: true })
    await store.open()
    return new Scene({ store, elapse: async () => {} })
  }
  const other = await open(await server.client())
  const one = await open(beforeWriting(await server.client(), () => act(other)))
  for (const id of ['a', 'b', 'c']) await one.put(id, { timeline: { every: 60_000 } })
  await server.setClock(start + 60_000)
  await work(one, other)
  for (const { store } of [one, other]) await store.close()
  await server.close()
}

it('of schedules that tick together, one that was changed meanwhile is left out', async () => {
  const pauseOne = (other: Scene) => other.store.schedules.pause('b', undefined)
  await threeDue(pauseOne, async (one, other) => {
    expect(await one.advance()).toMatchObject({ recorded: 2 })
    expect(await Promise.all(['a', 'b', 'c'].map(async (id) => (await one.runsOf(id)).length))).toEqual([1, 0, 1])
    expect(await other.advance()).toMatchObject({ recorded: 0 })
  })
})

it('a concurrent planner reads further than the schedules that another has read', async () => {
  let planned: number | undefined
  const planToo = async (other: Scene) => {
    planned = (await other.advance()).schedules
  }
  await threeDue(planToo, async (one) => {
    expect(await one.advance({ limit: 1_000 })).toMatchObject({ recorded: 3 })
    expect(planned).toBe(0)
  })
})

/** A client that performs an operation before it writes a plan. */
function beforeWriting(client: NodeRedis, act: () => Promise<unknown>): NodeRedis {
  const sendCommand: NodeRedis['sendCommand'] = async (args) => {
    const { sha, text } = recordTicksScript.composed.handTurned
    if (args[1] === sha || args[1] === text) await act()
    return client.sendCommand(args)
  }
  return new Proxy(client, {
    get(target, name) {
      const member: unknown = name === 'sendCommand' ? sendCommand : Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

it('of two concurrent planners with the same plan, one records it', async () => {
  await twoHandles(async (one, other) => {
    for (const id of ['a', 'b', 'c']) await one.putTicks(id, [-10, 90_000_000])
    const recorded = await advanceWhile(one, () => other.advance())
    await other.advance()
    expect(recorded).toBeLessThanOrEqual(3)
    for (const id of ['a', 'b', 'c']) expect(await one.runsOf(id)).toHaveLength(1)
  })
})

it('a planner that died in the middle delays others by at most half a second', async () => {
  const server = await testRedis()
  const start = Date.UTC(2026, 0, 1)
  await server.setClock(start)
  const open = async () => {
    const store = redisStore({ client: await server.client(), prefix: server.prefix }, { handTurned: true })
    await store.open()
    return new Scene({ store, elapse: async () => {} })
  }
  const [gone, other] = [await open(), await open()]
  await gone.putTicks('a', [-10, 90_000_000])
  const broken: Planner = () => {
    throw new Error('gone')
  }
  await expect(gone.advance({ plan: broken })).rejects.toThrow('gone')
  await server.setClock(start + 501)
  expect(await other.advance()).toMatchObject({ recorded: 1 })
  for (const { store } of [gone, other]) await store.close()
  await server.close()
})

it('all concurrent writers of one schedule succeed, each with its own version', async () => {
  await twoHandles(async (one, other) => {
    const writers = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? one : other).put('a', { payload: at }))
    const versions = (await Promise.all(writers)).map(({ version }) => version)
    expect(new Set(versions).size).toBe(20)
    const { version, definition } = await one.schedule('a')
    expect(version).toBe(Math.max(...versions))
    expect(versions[definition.payload as number]).toBe(version)
  })
})

it('fields with spaces, percent signs and line ends are stored intact', async () => {
  await twoHandles(async ({ store, acquire, enqueue, join, claim, run }) => {
    await join()
    const names = ['-', ' ', 'a b', 'a%20b', 'a\nb', '%', '%2d', 'ü', '💥 x']
    for (const name of names) {
      await acquire(name, `holder of ${name}`)
      await enqueue({ key: { name: `key ${name}`, limit: 1, whenBusy: 'wait' }, dedupe: name, schedule: name })
    }
    const { items } = await store.leases.list({ limit: 100 })
    expect(items.map(({ name, holder }) => [name, holder])).toEqual(
      [...names].sort().map((name) => [name, `holder of ${name}`]),
    )
    const claimed = await claim()
    expect(claimed.map(({ key }) => key?.name)).toEqual(names.map((name) => `key ${name}`))
    for (const { id, schedule, dedupe } of claimed) expect(await run(id)).toMatchObject({ schedule, dedupe })
  })
})
