import pg from 'pg'
import { afterAll } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from './ask.js'

export interface FreshPostgres {
  readonly store: Store
  readonly pool: pg.Pool
  readonly schema: string
  readonly url: string
  /** Gives the schema back. Close the store first. */
  close(): Promise<void>
}

/** Making tables takes longer than most tests, so those of a finished test are emptied and used again. */
const free: string[] = []
const made: string[] = []

/** A store in an empty schema of its own, on the server that the tests share. */
export async function freshPostgres(options: Omit<PostgresOptions, 'pool' | 'url' | 'schema'> = {}) {
  const url = await serverUrl('postgres')
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const schema = free.pop() ?? newSchema()
  const store = postgres({ pool, direct: url, schema, migrate: true, ...options })
  const close = async () => {
    await pool.query(EMPTY.replaceAll('@', schema))
    free.push(schema)
    await pool.end()
  }
  return { store, pool, schema, url, close } satisfies FreshPostgres
}

function newSchema(): string {
  const schema = `t${process.pid}_${Date.now().toString(36)}_${made.length}`
  made.push(schema)
  return schema
}

const EMPTY = `do $$ declare t text; begin
  for t in select tablename from pg_tables where schemaname = '@' and tablename <> 'meta' loop
    execute format('delete from %I.%I', '@', t);
  end loop;
end $$`

afterAll(async () => {
  if (made.length === 0) return
  const pool = new pg.Pool({ connectionString: await serverUrl('postgres') })
  for (const schema of made) await pool.query(`drop schema if exists ${schema} cascade`)
  await pool.end()
})
