/**
 * Virtual time on a real Redis: as on Postgres, virtual time stands still while anything is in flight to the server,
 * and the store's clock is set before the first command of a new instant.
 */
import type { Store } from '../../src/core/store.js'
import { redisStore } from '../../src/stores/redis/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { seededRandom } from '../../src/testing/random.js'
import { testCluster } from '../servers/test-cluster.js'
import { clockSync, testRedis, virtualTimeClient } from '../servers/test-redis.js'
import { Traffic } from '../servers/traffic.js'
import { countInFlight } from './counted-store.js'
import { withLateTimers } from './late-timers.js'
import type { StoreSetup } from './store-kinds.js'

export async function redisSetup(shards = 1): Promise<StoreSetup> {
  const redis = await testRedis()
  const traffic = new Traffic()
  const clock = manualClock(Date.UTC(2026, 0, 1), traffic.rest)
  const syncClock = clockSync(clock, redis)
  const handles: Store[] = []
  const random = seededRandom(1)
  return {
    handle: async () => {
      const client = virtualTimeClient(await redis.client(), syncClock, traffic)
      const store = redisStore({ client, prefix: redis.prefix, shards }, { handTurned: true })
      handles.push(store)
      // Opened here, because the test bed reads the store without an instance.
      await store.open()
      return countInFlight(store, traffic)
    },
    clock,
    processClock: () => withLateTimers(clock, random),
    poll: '200ms',
    elapse: (ms) => clock.advance(ms),
    close: async () => {
      await traffic.rest()
      await Promise.all(handles.map((store) => store.close()))
      await traffic.rest()
      await redis.close()
    },
  }
}

/** Virtual time on a real cluster: one shard per master, and every master's clock is set. */
export async function redisClusterSetup(): Promise<StoreSetup> {
  const cluster = await testCluster()
  const traffic = new Traffic()
  const clock = manualClock(Date.UTC(2026, 0, 1), traffic.rest)
  const handles: Store[] = []
  const random = seededRandom(1)
  return {
    handle: async () => {
      const client = await cluster.client(clock, traffic)
      const store = redisStore({ client, prefix: cluster.prefix, shards: 3 }, { handTurned: true })
      handles.push(store)
      await store.open()
      return countInFlight(store, traffic)
    },
    clock,
    processClock: () => withLateTimers(clock, random),
    poll: '200ms',
    elapse: (ms) => clock.advance(ms),
    close: async () => {
      await traffic.rest()
      await Promise.all(handles.map((store) => store.close()))
      await traffic.rest()
      cluster.close()
    },
  }
}
