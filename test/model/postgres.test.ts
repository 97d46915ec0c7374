import { expect, it } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { ROUTES, testDatabase } from '../servers/test-database.js'
import { clockSync, virtualTimePool } from '../servers/virtual-time-pool.js'
import { checkAgainstModel } from './model.js'

const THROUGH = { postgres: '', pgbouncer: ' through pgbouncer' }

for (const route of ROUTES) {
  it(`the postgres store${THROUGH[route]} agrees with the memory model in every story`, {
    timeout: 300_000,
  }, async () => {
    await checkAgainstModel({
      open: async (clock) => {
        const database = await testDatabase(route)
        const { schema } = database
        const pool = database.pool()
        const store = postgres({ pool: virtualTimePool(pool, clockSync(clock, database)), schema, listen: false })
        const close = async () => {
          await store.close()
          expect(pool.waitingCount).toBe(0)
          await database.close()
        }
        return { store, close }
      },
      runs: Number(process.env.BELFRY_MODEL_RUNS ?? (route === 'postgres' ? 100 : 40)),
    })
  })
}
