import { expect, it } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { testDatabase, WAYS } from '../servers/test-database.js'
import { inTimeWith, timedPool } from '../servers/timed-pool.js'
import { checkAgainstModel } from './model.js'

const THROUGH = { postgres: '', pgbouncer: ' through pgbouncer' }

for (const way of WAYS) {
  it(`the postgres store${THROUGH[way]} agrees with the memory model in every story`, {
    timeout: 300_000,
  }, async () => {
    await checkAgainstModel({
      open: async (clock) => {
        const database = await testDatabase(way)
        const { schema } = database
        const pool = database.pool()
        const store = postgres({ pool: timedPool(pool, inTimeWith(clock, database)), schema, listen: false })
        const close = async () => {
          await store.close()
          expect(pool.waitingCount).toBe(0)
          await database.close()
        }
        return { store, close }
      },
      runs: Number(process.env.BELFRY_MODEL_RUNS ?? (way === 'postgres' ? 100 : 40)),
    })
  })
}
