import type { Store } from '../../src/core/store.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { heldClient } from './held-redis.js'
import { HeldWrite } from './held-write.js'
import { testRedis } from './test-redis.js'

export interface FreshRedis {
  readonly store: Store
  readonly prefix: string
  /** Lets time pass on the store's clock, which else stands still. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Removes all keys. Close the store first. */
  close(): Promise<void>
}

/** An empty store of its own, on the server that the tests share, with a clock that is turned by hand. */
export async function freshRedis(shards = 1): Promise<FreshRedis> {
  const redis = await testRedis()
  const { prefix } = redis
  let now = Date.UTC(2026, 0, 1)
  await redis.setClock(now)
  const open = (client: NodeRedis) => redisStore({ client, prefix, shards }, { handTurned: true })
  const held = new HeldWrite()
  return {
    prefix,
    store: open(await redis.client()),
    async elapse(ms) {
      now += ms
      await redis.setClock(now)
    },
    interrupt: held.interrupt(async () => open(heldClient(await redis.client(), held))),
    async close() {
      await held.close()
      await redis.close()
    },
  }
}
