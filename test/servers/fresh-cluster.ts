import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/core/store.js'
import { redisStore } from '../../src/stores/redis/index.js'
import { testCluster } from './test-cluster.js'
import { Traffic } from './traffic.js'

/** Hints are on their way in real time. */
const HINT_MS = 20

export interface FreshCluster {
  readonly store: Store
  /** Lets time pass on the clocks of all masters, which else stand still. */
  elapse(ms: number): Promise<void>
  /** Gives the connections back. Close the store first. */
  close(): Promise<void>
}

/** An empty store of its own, on the cluster that the tests share, with clocks that are turned by hand. */
export async function freshCluster(): Promise<FreshCluster> {
  const cluster = await testCluster()
  let now = Date.UTC(2026, 0, 1)
  const client = await cluster.client({ now: () => now }, new Traffic())
  return {
    store: redisStore({ client, prefix: cluster.prefix, shards: 6 }, { handTurned: true }),
    async elapse(ms) {
      now += ms
      await sleep(HINT_MS)
    },
    async close() {
      cluster.close()
    },
  }
}
