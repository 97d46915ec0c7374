/** Named prepared statements: used only where connections reach the server itself. */
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { serverUrl } from '../servers/server-url.js'
import type { Route } from '../servers/test-database.js'

const NAMES = `select count(*) as count from pg_prepared_statements where name like 'belfry_%'`
const LOCK = { name: 'lock', ttlMs: 30_000, permits: 1, floor: 0 }

async function scene(route: Route, max = 1) {
  const fresh = await freshPostgres()
  const pool = new pg.Pool({ connectionString: await serverUrl(route), max })
  const store = postgres({ pool, schema: fresh.schema, listen: false })
  await store.open()
  const names = async () => Number((await pool.query(NAMES)).rows[0].count)
  const close = async () => {
    await store.close()
    await pool.end()
    await fresh.store.close()
    await fresh.close()
  }
  return { store, pool, names, close }
}

describe('the statements of the postgres store', () => {
  it('have names on a direct connection', async () => {
    const { store, names, close } = await scene('postgres')
    expect(await store.leases.acquire({ ...LOCK, holder: 'a' })).toMatchObject({ acquired: true })
    expect(await names()).toBeGreaterThan(0)
    await close()
  })

  it('have no names behind a pooler', async () => {
    const { store, names, close } = await scene('pgbouncer')
    expect(await store.leases.acquire({ ...LOCK, holder: 'a' })).toMatchObject({ acquired: true })
    expect(await names()).toBe(0)
    await close()
  })

  it('work without names when the server has forgotten them', async () => {
    const { store, pool, names, close } = await scene('postgres')
    const ask = () => store.leases.acquire({ ...LOCK, holder: 'a' })
    const first = await ask()
    await pool.query('deallocate all')
    expect(await ask()).toMatchObject({ acquired: true, lease: { token: first.acquired && first.lease.token } })
    await pool.query('deallocate all')
    expect(await ask()).toMatchObject({ acquired: true })
    expect(await names()).toBe(0)
    await close()
  })

  it('work without names when several are refused at once', async () => {
    const { store, pool, close } = await scene('postgres', 2)
    const both = () => Promise.all([store.leases.inspect('lock'), store.leases.inspect('lock')])
    await both()
    const clients = await Promise.all([pool.connect(), pool.connect()])
    for (const client of clients) await client.query('deallocate all')
    for (const client of clients) client.release()
    expect(await both()).toEqual([[], []])
    await close()
  })

  it('have no names when their text depends on filters', async () => {
    const { store, names, close } = await scene('postgres')
    const states = ['waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled', 'skipped'] as const
    for (let subset = 0; subset < 2 ** states.length; subset += 1) {
      await store.runs.list({ limit: 1, states: states.filter((_, at) => (subset & (1 << at)) !== 0) })
    }
    expect(await names()).toBeLessThanOrEqual(64)
    await close()
  })
})
