/** Settings of the server, the database or the role that an app has chosen for itself. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { type ContractCase, contractCases, type OpenedStore, runCase } from '../../src/testing/store-contract.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { serverUrl } from '../servers/server-url.js'
import { shadowBuiltIns } from '../servers/shadowed-built-ins.js'

const AREAS = ['schedules', 'advance', 'claim', 'settle', 'leases', 'records']
const [APP, APP_TOO] = [`app_${process.pid}`, `app_too_${process.pid}`]

/** Settings with which everything works, as docs/postgres.md lists them. */
const WORKS: Readonly<Record<string, readonly string[]>> = {
  default_transaction_isolation: ['read committed', 'repeatable read', 'serializable'],
  default_transaction_deferrable: ['on'],
  search_path: ['', 'nowhere', `${APP}, pg_catalog`],
  synchronous_commit: ['off', 'local'],
  plan_cache_mode: ['force_generic_plan', 'force_custom_plan'],
  statement_timeout: ['30s'],
  lock_timeout: ['30s'],
  idle_in_transaction_session_timeout: ['30s'],
  idle_session_timeout: ['1s'],
  datestyle: ['German', 'SQL, DMY'],
  intervalstyle: ['sql_standard'],
  timezone: ['Asia/Kathmandu'],
  extra_float_digits: ['-15'],
  bytea_output: ['escape'],
  standard_conforming_strings: ['off'],
  array_nulls: ['off'],
  transform_null_equals: ['on'],
  row_security: ['off'],
  enable_indexscan: ['off'],
}

let admin: pg.Pool

beforeAll(async () => {
  admin = new pg.Pool({ connectionString: await serverUrl('postgres'), max: 2 })
  admin.on('error', () => {})
  await shadowBuiltIns(admin, APP, { operators: true })
  await shadowBuiltIns(admin, APP_TOO)
}, 60_000)

afterAll(async () => {
  for (const schema of [APP, APP_TOO])
    await admin.query(`set client_min_messages = error; drop schema if exists ${schema} cascade`)
  await admin.end()
}, 60_000)

/** The first case of some areas of the contract. */
const STORY: readonly ContractCase[] = AREAS.map((area) => {
  const found = contractCases.find((test) => test.area === area)
  if (found === undefined) throw new Error(`the contract has no area ${area}`)
  return found
})

async function opened(pool: pg.Pool): Promise<OpenedStore> {
  const fresh = await freshPostgres()
  await fresh.store.close()
  return { ...fresh, store: postgres({ pool, schema: fresh.schema, listen: false }) }
}

function poolWith(settings: Readonly<Record<string, string>>): pg.Pool {
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  const pool = new pg.Pool({ ...admin.options, max: 4, options: options.join(' ') })
  pool.on('error', () => {})
  return pool
}

describe.each(Object.entries(WORKS))('with %s', (name, values) => {
  it.each(values)('= %j everything works', async (value) => {
    const pool = poolWith({ [name]: value })
    for (const test of STORY) await runCase(test, () => opened(pool))
    await pool.end()
  })
})

it('docs/postgres.md lists these settings', () => {
  const docs = readFileSync(new URL('../../docs/postgres.md', import.meta.url), 'utf8')
  const [, section = ''] = docs.split('\n## Settings\n')
  const cells = section.slice(0, section.indexOf('\n## ')).matchAll(/^\| (`.*?) \|/gm)
  const listed = Array.from(cells, ([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name)).flat()
  const known = (name: string | undefined) => name !== 'pg_catalog'
  expect(listed.filter(known).sort()).toEqual(Object.keys(WORKS).sort())
})

it('docs/postgres.md lists the versions that the tests run on', () => {
  const docs = readFileSync(new URL('../../docs/postgres.md', import.meta.url), 'utf8')
  const listed = /^\| Postgres \|(.*)\|$/m
    .exec(docs)?.[1]
    ?.split('|')
    .map((cell) => cell.trim())
  const versions = readFileSync(new URL('../versions/versions.json', import.meta.url), 'utf8')
  expect(listed).toEqual(JSON.parse(versions).postgres)
})

describe('functions of the app with the names of built-in ones', () => {
  it('are not called when the app puts their schema first later, on connections that Belfry knows', async () => {
    for (const test of contractCases.filter((_, at) => at % 8 === 0)) {
      const pool = new pg.Pool({ ...admin.options, max: 4 })
      const uses = new WeakMap<object, number>()
      pool.on('acquire', (client) => {
        const count = (uses.get(client) ?? 0) + 1
        uses.set(client, count)
        // Sent before the statements of the store. By then it has asked about the session.
        if (count === 3) void client.query(`set search_path = ${APP_TOO}, pg_catalog`)
      })
      await runCase(test, () => opened(pool))
      await pool.end()
    }
  }, 60_000)
})
