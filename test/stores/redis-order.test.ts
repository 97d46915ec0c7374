/**
 * When their key is in another shard, the runs of a key still start oldest first. The shards have different clocks and
 * fail over, and several instances carry the runs' tickets to the key's shard.
 */
import { createClient } from '@redis/client'
import { describe, expect, it } from 'vitest'
import type { RunKey } from '../../src/core/runs/key.js'
import { shardKeys, shardOf } from '../../src/stores/redis/cluster/shards.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import { Scene } from '../../src/testing/contract/scene.js'
import { serverUrl } from '../servers/server-url.js'
import { testRedis, virtualTimeClient } from '../servers/test-redis.js'

const SHARDS = 3
const START = Date.UTC(2026, 0, 1)
const LATER = 90_000_000
const KEY_SHARD = 1
const NAME = Array.from({ length: 100 }, (_, at) => `key ${at}`).find((name) => shardOf(name, SHARDS) === KEY_SHARD)
const KEY: RunKey = { name: NAME ?? '', limit: 1, whenBusy: 'wait' }
/** Schedules in another shard than the key. */
const SCHEDULES = Array.from({ length: 400 }, (_, at) => `s${at}`).filter((id) => shardOf(id, SHARDS) !== KEY_SHARD)

interface Shards {
  readonly one: Scene
  readonly other: Scene
  /** Stops an instance after this many answers, until `act` has ended. */
  readonly stopOne: (answers: number, act: () => Promise<unknown>) => void
  readonly stopOther: (answers: number, act: () => Promise<unknown>) => void
  readonly elapse: (ms: number) => Promise<void>
  /** Sets the clock of the key's shard this far ahead of the others, or behind them if the number is negative. */
  readonly setAhead: (ms: number) => Promise<void>
  /** Simulates a failover of the key's shard that loses its last writes, the tickets among them. */
  readonly loseTickets: () => Promise<void>
}

async function withShards(work: (shards: Shards) => Promise<void>): Promise<void> {
  const redis = await testRedis()
  const admin = createClient({ url: await serverUrl('redis') })
  await admin.connect()
  const keyShard = shardKeys(redis.prefix, SHARDS)[KEY_SHARD] ?? ''
  let [now, ahead] = [START, 0]
  const setClocks = async () => {
    await redis.setClock(now)
    if (ahead === 0) await admin.del(`${keyShard}told`)
    else await admin.set(`${keyShard}told`, `${now + ahead} ${(now + ahead) * 1_000}`)
  }
  await setClocks()
  const open = async () => {
    const { client, stopAfter } = stoppable(await redis.client())
    const store = redisStore({ client, prefix: redis.prefix, shards: SHARDS }, { handTurned: true })
    await store.open()
    return { scene: new Scene({ store, elapse }), stopAfter }
  }
  async function elapse(ms: number) {
    now += ms
    await setClocks()
  }
  const [one, other] = [await open(), await open()]
  await one.scene.join('one', LATER)
  await other.scene.join('other', LATER)
  try {
    await work({
      ...{ one: one.scene, other: other.scene, stopOne: one.stopAfter, stopOther: other.stopAfter, elapse },
      async setAhead(ms) {
        ahead = ms
        await setClocks()
      },
      async loseTickets() {
        const ofShard = await admin.keys(`${keyShard}*`)
        const lost = ofShard.filter((name) => /:(runs|queue:|key-)/.test(name))
        expect(lost.length).toBeGreaterThan(1)
        await admin.del(lost)
      },
    })
  } finally {
    await Promise.all([one, other].map(({ scene }) => scene.store.close()))
    admin.destroy()
    await redis.close()
  }
}

/** A client that can be stopped once a number of its commands were answered, until an operation has ended. */
function stoppable(client: NodeRedis) {
  let [left, act]: [number, (() => Promise<unknown>) | undefined] = [0, undefined]
  return {
    client: {
      ...virtualTimeClient(client, async () => {}),
      async sendCommand(args: readonly string[]) {
        const reply = await client.sendCommand(args)
        if (args[0] === 'PUBLISH' || act === undefined) return reply
        left -= 1
        if (left > 0) return reply
        const now = act
        act = undefined
        await now()
        return reply
      },
    },
    stopAfter(answers: number, what: () => Promise<unknown>) {
      left = answers
      act = what
    },
  }
}

/** Claims and settles runs one after another, and returns their ticks in the order of their starts. */
async function startOrder({ claim, settle }: Scene, count: number): Promise<(number | undefined)[]> {
  const order: (number | undefined)[] = []
  for (let round = 0; order.length < count && round < 3 * count; round += 1) {
    for (const run of await claim('one')) {
      order.push((run.tick ?? 0) - START)
      expect(await settle(run)).toBe('settled')
    }
  }
  return order
}

describe('runs of one schedule whose key is in another shard', () => {
  it(
    'keep their tickets while the clock of the key’s shard is ahead, however deliveries and claims interleave',
    {
      timeout: 60_000,
    },
    () =>
      withShards(async ({ one, other, stopOne, stopOther, elapse, setAhead }) => {
        let at = 0
        for (let deliverySteps = 1; deliverySteps < 13; deliverySteps += 1) {
          for (let claimSteps = 1; claimSteps < 13; claimSteps += 1) {
            await setAhead(5_000)
            const schedule = SCHEDULES[at] ?? ''
            at += 1
            await one.putTicks(schedule, [1_000, LATER], { key: KEY })
            let claiming: Promise<unknown> = Promise.resolve()
            const recording = new Promise<void>((resolve, reject) => {
              stopOne(deliverySteps, () => {
                // The delivery waits for this many answers to the claim. The claim then waits for the delivery's end.
                return new Promise<void>((continueDelivery) => {
                  stopOther(claimSteps, () => {
                    continueDelivery()
                    return recording
                  })
                  claiming = other.claim('other').finally(continueDelivery)
                })
              })
              one.advance({ lookaheadMs: 2_000 }).then(() => resolve(), reject)
            })
            await recording
            await claiming
            stopOne(0, async () => {})
            stopOther(0, async () => {})
            await setAhead(0)
            await elapse(6_000)
            const [run] = await one.claim('one')
            expect([deliverySteps, claimSteps, run?.schedule]).toEqual([deliverySteps, claimSteps, schedule])
            await one.settle(run ?? { id: '', token: 0 })
          }
        }
      }),
  )

  it('start in order when a failover has lost the ticket of the older one', () =>
    withShards(async ({ one, elapse, loseTickets }) => {
      const [schedule = ''] = SCHEDULES
      await one.putTicks(schedule, [-20, 1_000, LATER], { key: KEY })
      await one.advance()
      await loseTickets()
      await elapse(1_000)
      await one.advance()
      expect(await one.claim()).toEqual([])
      await elapse(100)
      expect(await startOrder(one, 2)).toEqual([-20, 1_000])
    }))

  it('start in order when the clock of the key’s shard is ahead', () =>
    withShards(async ({ one, elapse, setAhead }) => {
      const [schedule = ''] = SCHEDULES
      await setAhead(5_000)
      await one.putTicks(schedule, [1_000, 2_000, 3_000, LATER], { key: KEY })
      await one.advance({ lookaheadMs: 5_000 })
      const order: (number | undefined)[] = []
      for (let ms = 0; ms < 4_000; ms += 500) {
        order.push(...(await startOrder(one, 1)))
        await elapse(500)
      }
      expect(order).toEqual([1_000, 2_000, 3_000])
    }))
})

describe('the key of a run in another shard', () => {
  it('is free once the run has failed for good, whatever the time in the key’s shard', () =>
    withShards(async ({ one, other, elapse, setAhead }) => {
      const [schedule = ''] = SCHEDULES
      await one.putTicks(schedule, [-20, LATER], { key: KEY })
      await one.advance()
      for (let deaths = 1; deaths <= 4; deaths += 1) {
        await one.join(`dying ${deaths}`, 300)
        await one.claimOne(`dying ${deaths}`)
        // Simulates the promotion of a replica whose clock is behind. By that clock the lease has not expired yet.
        if (deaths === 4) await setAhead(-5_000)
        await elapse(1_000)
        await other.store.runs.rescue(100)
      }
      expect(await one.statesOf(schedule)).toEqual(['failed'])
      expect(await other.store.leases.inspect(KEY.name)).toEqual([])
    }))

  it('is free for the next attempt as soon as the run was taken over in its own shard', () =>
    withShards(async ({ one, other, elapse, setAhead }) => {
      const [schedule = ''] = SCHEDULES
      await one.putTicks(schedule, [-20, LATER], { key: KEY })
      await one.advance()
      await one.join('dying', 300)
      const dead = await one.claimOne('dying')
      await setAhead(-100)
      await elapse(350)
      await other.store.runs.rescue(100)
      await elapse(100)
      const again = await other.claimOne('other')
      expect(again).toMatchObject({ id: dead.id, attempt: 2, takeovers: 1 })
      expect(await one.settle(dead)).toBe('stale')
      expect(await other.settle(again)).toBe('settled')
    }))
})
