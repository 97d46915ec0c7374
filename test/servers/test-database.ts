/**
 * A schema on the shared server, with a manual clock. Creating tables and connections, and compiling the functions in
 * each connection, takes longer than most tests, so a finished test's schema is emptied and used again.
 */
import pg from 'pg'
import { afterAll } from 'vitest'
import { migratePostgres } from '../../src/stores/postgres/index.js'
import { emptySchemaSql, manualClockSql, notDurableSql, setClockSql } from './database-clock.js'
import { serverUrl } from './server-url.js'

/** How the store reaches the server. */
export type Route = 'postgres' | 'pgbouncer'

export const ROUTES: readonly Route[] = ['postgres', 'pgbouncer']

export interface TestDatabase {
  readonly schema: string
  /** A URL that reaches the server itself. */
  readonly direct: string
  /** The connections of one process. */
  pool(): pg.Pool
  setClock(now: number): Promise<unknown>
  /** Whether a statement waits for a lock. */
  isBlocked(): Promise<boolean>
  /** Returns the schema and the connections for other tests. Close the stores first. */
  close(): Promise<void>
}

/** A process has as few connections as behind a pooler. */
const POOL_SIZE = 4

const freeSchemas: string[] = []
const freePools: Record<Route, pg.Pool[]> = { postgres: [], pgbouncer: [] }
let admin: pg.Pool | undefined
let made = 0

export async function testDatabase(route: Route): Promise<TestDatabase> {
  const direct = await serverUrl('postgres')
  const url = route === 'postgres' ? direct : await serverUrl(route)
  admin ??= newPool(direct, 2)
  const owner = admin
  const schema = freeSchemas.pop() ?? (await newSchema(owner))
  const pools: pg.Pool[] = []
  return {
    schema,
    direct,
    pool() {
      const pool = freePools[route].pop() ?? newPool(url, POOL_SIZE)
      pools.push(pool)
      return pool
    },
    setClock: (now) => owner.query(setClockSql(schema, now)),
    async isBlocked() {
      const { rowCount } = await owner.query(BLOCKED, [`%${schema}%`])
      return rowCount !== 0
    },
    async close() {
      await owner.query(emptySchemaSql(schema))
      freeSchemas.push(schema)
      // Keeps the order, so that the next test first gets the pool whose connections have compiled the most functions.
      freePools[route].push(...pools.reverse())
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
  await owner.query(manualClockSql(schema))
  await owner.query(notDurableSql(schema))
  return schema
}

afterAll(async () => {
  for (const pool of Object.values(freePools).flat()) await pool.end()
  for (const schema of freeSchemas) await admin?.query(`drop schema if exists ${schema} cascade`)
  await admin?.end()
})
