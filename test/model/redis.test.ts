import { it } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.js'
import { clockSync, testRedis, virtualTimeClient } from '../servers/test-redis.js'
import { checkAgainstModel } from './model.js'

const NEVER_MS = 1e12
const RUNS = Number(process.env.BELFRY_MODEL_RUNS ?? 100)

async function check(shards: number, runs: number): Promise<void> {
  await checkAgainstModel({
    open: async (clock) => {
      const redis = await testRedis()
      const client = virtualTimeClient(await redis.client(), clockSync(clock, redis))
      // Virtual time passes while commands are in flight, so a timeout would not mean that the server is unreachable.
      const options = { client, prefix: redis.prefix, shards, clock, timeoutMs: NEVER_MS }
      const store = redisStore(options, { handTurned: true })
      const close = async () => {
        await store.close()
        await redis.close()
      }
      return { store, close }
    },
    runs,
    isSharded: shards > 1,
  })
}

it('the redis store agrees with the memory model in every story', { timeout: 300_000 }, () => check(1, RUNS))

it('the redis store agrees with the memory model in three shards', { timeout: 300_000 }, () =>
  check(3, Math.ceil(RUNS / 2)),
)
