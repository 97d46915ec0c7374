import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { migratePostgres, postgres, postgresMigrationSql } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/server-url.js'

const SCHEMA = `schema_${process.pid}`

async function withPool<Result>(work: (pool: pg.Pool) => Promise<Result>): Promise<Result> {
  const pool = new pg.Pool({ connectionString: await serverUrl('postgres') })
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

afterEach(() => withPool((pool) => pool.query(`drop schema if exists ${SCHEMA} cascade`)))

describe('the tables of the postgres store', () => {
  it('are not created by ordinary operations', async () => {
    const store = postgres({ url: await serverUrl('postgres'), schema: SCHEMA, listen: false })
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_INVALID', message: /belfry migrate/ })
    await store.close()
  })

  it('are created once when ten processes start at the same time', async () => {
    const url = await serverUrl('postgres')
    await Promise.all(Array.from({ length: 10 }, () => migratePostgres({ url, schema: SCHEMA })))
    const store = postgres({ url, schema: SCHEMA, listen: false })
    await store.open()
    expect(await store.runs.list({ limit: 1 })).toEqual({ items: [] })
    await store.close()
  })

  it('can be created by hand from the SQL of a dry run', async () => {
    await withPool((pool) => pool.query(`begin; ${postgresMigrationSql(SCHEMA)} commit`))
    const store = postgres({ url: await serverUrl('postgres'), schema: SCHEMA, listen: false })
    await store.open()
    expect(await store.schedules.list({ limit: 1 })).toEqual({ items: [] })
    await store.close()
  })

  it('are refused when a newer version of Belfry created them', async () => {
    const url = await serverUrl('postgres')
    await migratePostgres({ url, schema: SCHEMA })
    await withPool((pool) => pool.query(`update ${SCHEMA}.meta set value = 99`))
    const newer = { code: 'STORE_INVALID', message: /newer Belfry/ }
    await expect(migratePostgres({ url, schema: SCHEMA })).rejects.toMatchObject(newer)
    const store = postgres({ url, schema: SCHEMA, listen: false })
    await expect(store.open()).rejects.toMatchObject(newer)
    await store.close()
  })

  it('are in a schema whose name is quoted safely', () => {
    for (const schema of ['', 'A', 'a-b', 'a"; drop table x; --', 'pg_x', 'information_schema', '1a', 'a'.repeat(49)]) {
      expect(() => postgresMigrationSql(schema), schema).toThrow(/is not allowed/)
    }
  })
})

describe('an unreachable postgres store', () => {
  it('rejects as unreachable, with the cause', async () => {
    const store = postgres({ url: 'postgres://nobody@127.0.0.1:1/none', listen: false })
    await expect(store.now()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', cause: { code: 'ECONNREFUSED' } })
    await store.close()
  })

  it('survives the loss of its idle connections', async () => {
    const url = await serverUrl('postgres')
    const store = postgres({ url, schema: SCHEMA, migrate: true })
    await store.open()
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and query like '%${SCHEMA}%'`
    await withPool((pool) => pool.query(cut))
    await expect.poll(() => store.now().catch(() => 0)).toBeGreaterThan(0)
    await store.close()
  })

  it('refuses sessions that may only read', async () => {
    const url = await serverUrl('postgres')
    await migratePostgres({ url, schema: SCHEMA })
    const pool = new pg.Pool({ connectionString: url, options: '-c default_transaction_read_only=on' })
    const store = postgres({ pool, schema: SCHEMA, listen: false })
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: /default_transaction_read_only is on/,
    })
    await store.close()
    await pool.end()
  })
})

describe('a postgres store on connections that default to another isolation level', () => {
  for (const level of ['repeatable read', 'serializable']) {
    it(`works at ${level} as at any other`, async () => {
      const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`
      const pool = new pg.Pool({ connectionString: await serverUrl('postgres'), options })
      await migratePostgres({ pool, schema: SCHEMA })
      const store = postgres({ pool, schema: SCHEMA, listen: false })
      await store.open()
      const ask = (holder: string) => store.leases.acquire({ name: 'a', holder, ttlMs: 30_000, permits: 1, floor: 0 })
      const asked = await Promise.all(['a', 'b', 'c', 'd'].map(ask))
      expect(asked.filter(({ acquired }) => acquired)).toHaveLength(1)
      const run = { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const
      await store.runs.enqueue([run, run])
      const info = { host: 'host', pid: 1, zoneData: '', jobs: [{ name: 'work' }] }
      for (const id of ['one', 'other']) await store.instances.join({ ...info, id }, 60_000)
      const request = { claim: 1, limit: 2, jobs: [{ name: 'work', limit: 2 }], sinks: [], floor: 0 }
      const claims = await Promise.all(['one', 'other'].map((instance) => store.runs.claim({ ...request, instance })))
      const [attempt, ...others] = claims.flatMap(({ runs }) => runs)
      expect(others).toHaveLength(1)
      expect(
        await store.runs.settle([
          { run: attempt?.id ?? '', token: attempt?.token ?? 0, outcome: { kind: 'succeeded' } },
        ]),
      ).toEqual(['settled'])
      await store.close()
      await pool.end()
    })
  }
})

describe('the clock of the postgres store', () => {
  it('is the database’s, and leases expire by it', async () => {
    const url = await serverUrl('postgres')
    const store = postgres({ url, schema: SCHEMA, migrate: true, listen: false })
    await store.open()
    const { rows } = await withPool((pool) => pool.query('select extract(epoch from clock_timestamp()) * 1000 as now'))
    expect(Math.abs((await store.now()) - Number(rows[0].now))).toBeLessThan(5_000)
    const ask = (holder: string) => store.leases.acquire({ name: 'a', holder, ttlMs: 300, permits: 1, floor: 0 })
    expect(await ask('one')).toMatchObject({ acquired: true })
    expect(await ask('two')).toMatchObject({ acquired: false })
    await expect.poll(() => ask('two'), { timeout: 5_000 }).toMatchObject({ acquired: true })
    await store.close()
  })
})

describe('hints of the postgres store', () => {
  it('reach another process', async () => {
    const url = await serverUrl('postgres')
    const [one, other] = [postgres({ url, schema: SCHEMA, migrate: true }), postgres({ url, schema: SCHEMA })]
    await one.open()
    await other.open()
    const heard: string[] = []
    other.subscribe((wake) => heard.push(wake))
    await one.runs.enqueue([{ target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' }])
    await expect.poll(() => heard).toContain('runs')
    await one.close()
    await other.close()
  })
})
