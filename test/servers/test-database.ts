/**
 * A schema of its own on the server that the tests share, with a clock that is turned by hand. Making tables and
 * connections, and compiling functions in each of those, takes longer than most tests: so what a finished test had is
 * emptied and used again by the next one.
 */
import pg from 'pg'
import { afterAll } from 'vitest'
import { migratePostgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from './ask.js'
import { emptySchema, notDurable, setClock, turnedByHand } from './database-clock.js'

/** How the store reaches its server. */
export type Way = 'postgres' | 'pgbouncer'

export const WAYS: readonly Way[] = ['postgres', 'pgbouncer']

export interface TestDatabase {
  readonly schema: string
  /** A URL that reaches the server itself. */
  readonly direct: string
  /** The connections of one process. */
  pool(): pg.Pool
  setClock(now: number): Promise<unknown>
  /** Whether a statement waits for a lock. */
  isBlocked(): Promise<boolean>
  /** Gives everything back. Close the stores first. */
  close(): Promise<void>
}

/** Few for each process, as a pooler would have it. */
const POOL_SIZE = 4

const freeSchemas: string[] = []
const freePools: Record<Way, pg.Pool[]> = { postgres: [], pgbouncer: [] }
let admin: pg.Pool | undefined
let made = 0

export async function testDatabase(way: Way): Promise<TestDatabase> {
  const direct = await serverUrl('postgres')
  const url = way === 'postgres' ? direct : await serverUrl(way)
  admin ??= newPool(direct, 2)
  const owner = admin
  const schema = freeSchemas.pop() ?? (await newSchema(owner))
  const pools: pg.Pool[] = []
  return {
    schema,
    direct,
    pool() {
      const pool = freePools[way].pop() ?? newPool(url, POOL_SIZE)
      pools.push(pool)
      return pool
    },
    setClock: (now) => owner.query(setClock(schema, now)),
    async isBlocked() {
      const { rowCount } = await owner.query(BLOCKED, [`%${schema}%`])
      return rowCount !== 0
    },
    async close() {
      await owner.query(emptySchema(schema))
      freeSchemas.push(schema)
      // The one that was first is first again, and most of its work with it.
      freePools[way].push(...pools.reverse())
    },
  }
}

const BLOCKED = `select from pg_stat_activity where wait_event_type = 'Lock' and query like $1`

function newPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max, idleTimeoutMillis: 0 })
  pool.on('error', () => {})
  return pool
}

async function newSchema(owner: pg.Pool): Promise<string> {
  made += 1
  const schema = `t${process.pid}_${Date.now().toString(36)}_${made}`
  await migratePostgres({ pool: owner, schema })
  await owner.query(turnedByHand(schema))
  await owner.query(notDurable(schema))
  return schema
}

afterAll(async () => {
  for (const pool of Object.values(freePools).flat()) await pool.end()
  for (const schema of freeSchemas) await admin?.query(`drop schema if exists ${schema} cascade`)
  await admin?.end()
})
