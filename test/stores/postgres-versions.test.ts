import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import {
  FUNCTIONS_HASH,
  RELEASE,
  releaseNumber,
  SCHEMA_VERSION,
} from '../../src/stores/postgres/schema/migration-sql.js'
import { serverUrl } from '../servers/server-url.js'

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
  await pool.query(`update ${SCHEMA}.meta set value = case name when 'schema' then ${version} else ${compatible} end
    where name in ('schema', 'compatible')`)
}

async function open(): Promise<void> {
  const store = postgres({ pool, schema: SCHEMA, listen: false })
  try {
    await store.open()
  } finally {
    await store.close()
  }
}

it('a schema that a newer release has extended is still opened, so that the release before can be restarted', async () => {
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

/** Pretends that a release with other functions has migrated last. */
async function pretendFunctions(release: number): Promise<void> {
  await pretend(SCHEMA_VERSION, SCHEMA_VERSION)
  await pool.query(`update ${SCHEMA}.meta set value = case name when 'functions' then 1 else ${release} end
    where name in ('functions', 'release')`)
  await pool.query(`create or replace function ${SCHEMA}.leave(instance_id text) returns void language sql as ''`)
}

async function functionsNow(): Promise<number> {
  const { rows } = await pool.query(`select value from ${SCHEMA}.meta where name = 'functions'`)
  return Number(rows[0].value)
}

it('functions of an older release are refused, and replaced by migrating, although no table has changed', async () => {
  await pretendFunctions(RELEASE - 1)
  await expect(open()).rejects.toThrow(/has the functions of an older release: run `belfry migrate`/)
  const report = await migratePostgres({ pool, schema: SCHEMA })
  expect(report).toMatchObject({ from: SCHEMA_VERSION, to: SCHEMA_VERSION })
  expect(report.sql).toContain('.leave(instance_id text)')
  expect(await functionsNow()).toBe(FUNCTIONS_HASH)
  const { rows } = await pool.query(`select prosrc from pg_proc where oid = '${SCHEMA}.leave'::regproc`)
  expect(rows[0].prosrc).toContain('for update')
  expect(await migratePostgres({ pool, schema: SCHEMA })).toMatchObject({ sql: '' })
  await open()
})

it('functions of a newer release are used, and never replaced by an older one', async () => {
  await pretendFunctions(RELEASE + 1)
  await open()
  expect(await migratePostgres({ pool, schema: SCHEMA })).toMatchObject({ sql: '' })
  expect(await functionsNow()).toBe(1)
})

it('ten processes that find older functions replace them once', async () => {
  await pretendFunctions(RELEASE - 1)
  const all = await Promise.all(Array.from({ length: 10 }, () => migratePostgres({ pool, schema: SCHEMA })))
  expect(all.filter(({ sql }) => sql !== '')).toHaveLength(1)
})

it('later releases have higher numbers', () => {
  const versions = ['0.1.0', '0.1.10', '0.2.0', '0.10.0-beta.1', '1.0.0', '1.2.3+build']
  const numbers = versions.map(releaseNumber)
  expect([...numbers].sort((one, other) => one - other)).toEqual(numbers)
})
