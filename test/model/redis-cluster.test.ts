import { it } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.js'
import { testCluster } from '../servers/test-cluster.js'
import { Traffic } from '../servers/traffic.js'
import { checkAgainstModel } from './model.js'

it('the redis store agrees with the memory model on a cluster', { timeout: 600_000 }, async () => {
  await checkAgainstModel({
    open: async (clock) => {
      const cluster = await testCluster()
      const client = await cluster.client(clock, new Traffic())
      const store = redisStore({ client, prefix: cluster.prefix, shards: 6, clock }, { handTurned: true })
      const close = async () => {
        await store.close()
        cluster.close()
      }
      return { store, close }
    },
    // A fifth of the stories: the test with three shards on one server covers the rest.
    runs: Math.ceil(Number(process.env.BELFRY_MODEL_RUNS ?? 100) / 5),
    isSharded: true,
  })
})
