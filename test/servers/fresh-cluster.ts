import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/core/store.js'
import { type NodeRedisCluster, redisStore } from '../../src/stores/redis/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { interruptedCluster } from './interrupted-redis.js'
import { InterruptedWrite } from './interrupted-write.js'
import { testCluster } from './test-cluster.js'
import { Traffic } from './traffic.js'

/** Hints arrive in real time, so each step waits this long for them. */
const HINT_MS = 20

export interface FreshCluster {
  readonly store: Store
  /** Advances the clocks of all masters, which stand still otherwise. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Returns the connections for other tests. Close the store first. */
  close(): Promise<void>
}

/** An empty store on the shared cluster, with manual clocks. */
export async function freshCluster(): Promise<FreshCluster> {
  const cluster = await testCluster()
  let now = Date.UTC(2026, 0, 1)
  const newClient = () => cluster.client({ now: () => now }, new Traffic())
  const open = (client: NodeRedisCluster) =>
    redisStore({ client, prefix: cluster.prefix, shards: 6 }, { handTurned: true })
  const write = new InterruptedWrite()
  return {
    store: open(await newClient()),
    async elapse(ms) {
      now += ms
      await sleep(HINT_MS)
    },
    interrupt: write.interrupt(async () => open(interruptedCluster(await newClient(), write))),
    async close() {
      await write.close()
      cluster.close()
    },
  }
}
