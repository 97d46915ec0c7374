import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { SCHEMA_VERSION } from '../../src/stores/postgres/schema.js'
import { serverUrl } from '../servers/ask.js'

const SCHEMA = `versions_${process.pid}`
let pool: pg.Pool

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await serverUrl('postgres') })
  await migratePostgres({ pool, schema: SCHEMA })
})

afterAll(async () => {
  await pool.query(`drop schema if exists ${SCHEMA} cascade`)
  await pool.end()
})

async function pretend(version: number, compatible: number): Promise<void> {
  await pool.query(`update ${SCHEMA}.meta set value = case name when 'schema' then ${version} else ${compatible} end`)
}

async function open(): Promise<void> {
  const store = postgres({ pool, schema: SCHEMA, listen: false })
  try {
    await store.open()
  } finally {
    await store.close()
  }
}

it('a schema that a newer release has added to is still opened, so that the release before can be restarted', async () => {
  await pretend(SCHEMA_VERSION + 1, SCHEMA_VERSION)
  await open()
})

it('a schema that a newer release has changed is refused', async () => {
  await pretend(SCHEMA_VERSION + 2, SCHEMA_VERSION + 1)
  await expect(open()).rejects.toThrow(/written by a newer Belfry .* upgrade belfry here too/)
})

it('an older release migrates nothing back', async () => {
  await pretend(SCHEMA_VERSION + 1, SCHEMA_VERSION)
  await expect(migratePostgres({ pool, schema: SCHEMA })).rejects.toThrow(/written by a newer Belfry/)
})
