import type { Store } from '../../src/core/store.js'
import { type NodeRedis, redisStore } from '../../src/stores/redis/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { interruptedClient } from './interrupted-redis.js'
import { InterruptedWrite } from './interrupted-write.js'
import { testRedis } from './test-redis.js'

export interface FreshRedis {
  readonly store: Store
  readonly prefix: string
  /** Advances the store's clock, which stands still otherwise. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Removes all keys. Close the store first. */
  close(): Promise<void>
}

/** An empty store on the shared server, with a manual clock. */
export async function freshRedis(shards = 1): Promise<FreshRedis> {
  const redis = await testRedis()
  const { prefix } = redis
  let now = Date.UTC(2026, 0, 1)
  await redis.setClock(now)
  const open = (client: NodeRedis) => redisStore({ client, prefix, shards }, { handTurned: true })
  const write = new InterruptedWrite()
  return {
    prefix,
    store: open(await redis.client()),
    async elapse(ms) {
      now += ms
      await redis.setClock(now)
    },
    interrupt: write.interrupt(async () => open(interruptedClient(await redis.client(), write))),
    async close() {
      await write.close()
      await redis.close()
    },
  }
}
