/** The model's clock is turned by hand, and so is the database's: it is set to the same before each statement. */
import pg from 'pg'
import { expect, it } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import { migratePostgres, type PgPool, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/ask.js'
import { emptySchema, setClock, turnedByHand } from '../servers/database-clock.js'
import { checkAgainstModel } from './model.js'

const SCHEMA = `model_${process.pid}`

/** Nothing here outlives the test, so nothing has to be on disk either: that makes it ten times as fast. */
const NOT_DURABLE = `create or replace function ${SCHEMA}.durable() returns void language sql as 'select'`

/** Sets the database's clock to the model's whenever that has moved. */
function inTimeWith(pool: pg.Pool, clock: Clock): PgPool {
  let told: number | undefined
  const tell = async () => {
    const now = clock.now()
    if (now === told) return
    told = now
    await pool.query(setClock(SCHEMA, now))
  }
  const timed = {
    connect: () => tell().then(() => pool.connect()),
    query: (query: pg.QueryConfig) => tell().then(() => pool.query(query)),
    on: () => {},
    end: async () => {},
  }
  return timed as unknown as PgPool
}

it('the postgres store agrees with the memory model, whatever happens', { timeout: 300_000 }, async () => {
  const url = await serverUrl('postgres')
  const pool = new pg.Pool({ connectionString: url, max: 4, options: '-c synchronous_commit=off' })
  try {
    await migratePostgres({ pool, schema: SCHEMA })
    await pool.query(turnedByHand(SCHEMA))
    await pool.query(NOT_DURABLE)
    await checkAgainstModel({
      open: async (clock) => {
        await pool.query(emptySchema(SCHEMA))
        return { store: postgres({ pool: inTimeWith(pool, clock), schema: SCHEMA, listen: false }) }
      },
      runs: Number(process.env.BELFRY_MODEL_RUNS ?? 100),
    })
    expect(pool.waitingCount).toBe(0)
  } finally {
    await pool.query(`drop schema if exists ${SCHEMA} cascade`)
    await pool.end()
  }
})
