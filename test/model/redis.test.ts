import { it } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.js'
import { inTimeWith, testRedis, timedClient } from '../servers/test-redis.js'
import { checkAgainstModel } from './model.js'

it('the redis store agrees with the memory model, whatever happens', { timeout: 300_000 }, async () => {
  await checkAgainstModel({
    open: async (clock) => {
      const redis = await testRedis()
      const client = timedClient(await redis.client(), inTimeWith(clock, redis))
      const store = redisStore({ client, prefix: redis.prefix, clock }, { handTurned: true })
      const close = async () => {
        await store.close()
        await redis.close()
      }
      return { store, close }
    },
    runs: Number(process.env.BELFRY_MODEL_RUNS ?? 100),
  })
})
