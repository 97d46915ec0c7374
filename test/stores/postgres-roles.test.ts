/** Database roles with few rights, and schemas that belong to another role. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { silentLogger } from '../../src/core/logger.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/server-url.js'

const NAME = `roles_${process.pid}_${Date.now().toString(36)}`
const [OWNER, APP, SCHEMA] = [`${NAME}_owner`, `${NAME}_app`, 'jobs']
let admin: pg.Pool

beforeAll(async () => {
  const url = await serverUrl('postgres')
  const server = new pg.Client({ connectionString: url })
  await server.connect()
  await server.query(`create database ${NAME}`)
  await server.end()
  admin = new pg.Pool({ connectionString: urlOf(url), max: 2 })
  for (const role of [OWNER, APP]) await admin.query(`create role ${role} login`)
})

afterEach(() => admin.query(`drop schema if exists ${SCHEMA} cascade`))

afterAll(async () => {
  for (const role of [OWNER, APP]) await admin.query(`drop owned by ${role}`)
  for (const role of [OWNER, APP]) await admin.query(`drop role ${role}`)
  await admin.end()
  const server = new pg.Client({ connectionString: await serverUrl('postgres') })
  await server.connect()
  await server.query(`drop database if exists ${NAME} with (force)`)
  await server.end()
})

function urlOf(url: string, role?: string): string {
  return Object.assign(new URL(url), { pathname: `/${NAME}`, ...(role === undefined ? {} : { username: role }) }).href
}

const as = async (role: string) => urlOf(await serverUrl('postgres'), role)

/** The grants in docs/postgres.md. */
const GRANTS = `
  grant usage on schema ${SCHEMA} to ${APP};
  grant select, insert, update, delete on all tables in schema ${SCHEMA} to ${APP};
  grant usage on all sequences in schema ${SCHEMA} to ${APP};
  grant execute on all functions in schema ${SCHEMA} to ${APP};
  alter default privileges for role ${OWNER} in schema ${SCHEMA} grant select, insert, update, delete on tables to ${APP};
  alter default privileges for role ${OWNER} in schema ${SCHEMA} grant usage on sequences to ${APP};
  alter default privileges for role ${OWNER} in schema ${SCHEMA} grant execute on functions to ${APP}`

describe('belfry migrate', () => {
  it('needs no right on the database when the schema exists', async () => {
    await admin.query(`create schema ${SCHEMA} authorization ${OWNER}`)
    const url = await as(OWNER)
    expect(await migratePostgres({ url, schema: SCHEMA, dryRun: true })).not.toMatchObject({
      sql: expect.stringContaining('create schema'),
    })
    expect(await migratePostgres({ url, schema: SCHEMA })).toMatchObject({ from: 0 })
  })

  it('names the missing grant when the schema does not exist', async () => {
    const asked = migratePostgres({ url: await as(OWNER), schema: SCHEMA })
    await expect(asked).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining(
        `the role "${OWNER}" may not migrate the schema "${SCHEMA}": grant create on database "${NAME}" to "${OWNER}"; or make the schema for it: create schema "${SCHEMA}" authorization "${OWNER}"`,
      ),
    })
  })

  it('names the missing grant when the schema belongs to another role', async () => {
    await admin.query(`create schema ${SCHEMA}`)
    const asked = migratePostgres({ url: await as(OWNER), schema: SCHEMA })
    await expect(asked).rejects.toThrow(`grant usage, create on schema "${SCHEMA}" to "${OWNER}"`)
    await admin.query(`grant usage, create on schema ${SCHEMA} to ${OWNER}`)
    expect(await migratePostgres({ url: await as(OWNER), schema: SCHEMA })).toMatchObject({ from: 0 })
  })

  it('names the role that may migrate when the tables belong to another', async () => {
    await migratePostgres({ pool: admin, schema: SCHEMA })
    await admin.query(`update ${SCHEMA}.meta set value = 0 where name in ('functions', 'release')`)
    await admin.query(GRANTS)
    const asked = migratePostgres({ url: await as(APP), schema: SCHEMA })
    await expect(asked).rejects.toThrow(/may not migrate .* migrate as the role that made the tables/)
  })

  for (const table of ['meta', 'runs', 'lock_names']) {
    it(`refuses a schema that contains a foreign table "${table}"`, async () => {
      await admin.query(`create schema ${SCHEMA}; create table ${SCHEMA}.${table} (mine int)`)
      const refusal = {
        code: 'STORE_INVALID',
        message: `the schema "${SCHEMA}" has a "${table}" that Belfry did not make: give Belfry a schema of its own, with { schema } or --schema`,
      }
      await expect(migratePostgres({ pool: admin, schema: SCHEMA })).rejects.toMatchObject(refusal)
      await expect(migratePostgres({ pool: admin, schema: SCHEMA, dryRun: true })).rejects.toMatchObject(refusal)
      await expect(postgres({ pool: admin, schema: SCHEMA, listen: false }).open()).rejects.toMatchObject(refusal)
    })
  }

  it('is not misled by a table that only looks like its own', async () => {
    await admin.query(`create schema ${SCHEMA}; create table ${SCHEMA}.meta (name text, value bigint)`)
    await expect(migratePostgres({ pool: admin, schema: SCHEMA })).rejects.toThrow(
      /has a "meta" that Belfry did not make/,
    )
  })
})

describe('a role without the right to create anything', () => {
  it('runs everything with the documented grants, in both modes', async () => {
    await migratePostgres({ pool: admin, schema: SCHEMA })
    await admin.query(GRANTS)
    for (const liveness of ['lease', 'advisory'] as const) {
      const store = postgres({ url: await as(APP), schema: SCHEMA, liveness })
      const belfry = createBelfry({ store, logger: silentLogger, poll: '50ms' })
      const ran: unknown[] = []
      const job = belfry.job<number>('work', {
        exclusive: true,
        run: ({ payload, transaction }) => transaction(async () => ran.push(payload)),
      })
      belfry.schedule(`every-${liveness}`, { every: '1s', job, payload: -1 })
      await belfry.start()
      await job.enqueue(1, { key: liveness, keyFor: '1m' })
      await belfry.withLock('lock', () => {})
      await expect.poll(() => ran, { timeout: 20_000 }).toEqual(expect.arrayContaining([1, -1]))
      await store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 100 })
      await belfry.schedules.remove(`every-${liveness}`)
      await belfry.stop()
    }
  })

  it('gets an error that names the missing grants', async () => {
    await migratePostgres({ pool: admin, schema: SCHEMA })
    const store = postgres({ url: await as(APP), schema: SCHEMA, listen: false })
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('grant it usage on the schema, select, insert, update and delete on its tables'),
    })
    await store.close()
  })
})
