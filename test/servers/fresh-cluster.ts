import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/core/store.js'
import { type NodeRedisCluster, redisStore } from '../../src/stores/redis/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { heldCluster } from './held-redis.js'
import { HeldWrite } from './held-write.js'
import { testCluster } from './test-cluster.js'
import { Traffic } from './traffic.js'

/** Hints are on their way in real time. */
const HINT_MS = 20

export interface FreshCluster {
  readonly store: Store
  /** Lets time pass on the clocks of all masters, which else stand still. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Gives the connections back. Close the store first. */
  close(): Promise<void>
}

/** An empty store of its own, on the cluster that the tests share, with clocks that are turned by hand. */
export async function freshCluster(): Promise<FreshCluster> {
  const cluster = await testCluster()
  let now = Date.UTC(2026, 0, 1)
  const newClient = () => cluster.client({ now: () => now }, new Traffic())
  const open = (client: NodeRedisCluster) =>
    redisStore({ client, prefix: cluster.prefix, shards: 6 }, { handTurned: true })
  const held = new HeldWrite()
  return {
    store: open(await newClient()),
    async elapse(ms) {
      now += ms
      await sleep(HINT_MS)
    },
    interrupt: held.interrupt(async () => open(heldCluster(await newClient(), held))),
    async close() {
      await held.close()
      cluster.close()
    },
  }
}
