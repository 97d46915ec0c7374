/** The store behind a pooler, on connections that other clients have used before. */
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { LONG_LEASE_MS, newRun } from '../../src/testing/contract/scene.js'
import { contractCases, type OpenedStore, runCase } from '../../src/testing/store-contract.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { serverUrl } from '../servers/server-url.js'

const pools = new Map<string, pg.Pool>()

afterAll(() => Promise.all([...pools.values()].map((pool) => pool.end())))

/** A store on connections with settings that other clients left, as behind a pooler in transaction mode. */
async function onLeftovers(settings: Readonly<Record<string, string>>): Promise<OpenedStore> {
  const fresh = await freshPostgres()
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  const pool = poolWith(fresh.direct, options.join(' '))
  await fresh.store.close()
  const store = postgres({ pool, schema: fresh.schema, listen: false })
  // Skips open(), which checks the defaults of a session. Settings that another client leaves later are never checked.
  return { ...fresh, store: { ...store, open: async () => {} } }
}

function poolWith(connectionString: string, options: string): pg.Pool {
  const pool = pools.get(options) ?? new pg.Pool({ connectionString, max: 4, options })
  pools.set(options, pool)
  return pool
}

const LEFT = {
  search_path: 'nowhere',
  standard_conforming_strings: 'off',
  timezone: 'Asia/Kathmandu',
  datestyle: 'German',
  intervalstyle: 'sql_standard',
  extra_float_digits: '-15',
  enable_indexscan: 'off',
  enable_bitmapscan: 'off',
  // Without index scans, plans look so expensive that the server would JIT-compile them, for half a second each time.
  jit: 'off',
  synchronous_commit: 'off',
}

describe('the postgres store', () => {
  for (const { area, name, ...test } of contractCases.filter(({ area }) => ['leases', 'keys'].includes(area))) {
    it(`ignores settings that other clients left on a connection: ${name}`, () =>
      runCase({ area, name, ...test }, () => onLeftovers(LEFT)))
  }

  for (const { area, name, ...test } of contractCases.filter(({ name }) => /at once|moment/.test(name))) {
    for (const level of ['repeatable read', 'serializable']) {
      it(`ignores the isolation level ${level} that another client left on a connection: ${name}`, () =>
        runCase({ area, name, ...test }, () => onLeftovers({ default_transaction_isolation: level })))
    }
  }

  it('refuses to begin an operation at an isolation level other than read committed, and repeats it at that level', async () => {
    const { store, schema, direct, close } = await freshPostgres()
    const pool = poolWith(direct, '-c default_transaction_isolation=repeatable\\ read')
    const asked = pool.query(`select * from ${schema}.release_locks('{}', '')`)
    await expect(asked).rejects.toMatchObject({ code: 'BF003', message: /repeatable read/ })
    const left = postgres({ pool, schema, listen: false })
    expect(await left.leases.acquire({ ...LOCK, holder: 'a' })).toMatchObject({ acquired: true })
    expect(await left.leases.release({ name: 'l', holder: 'a' })).toBe(true)
    await store.close()
    await close()
  })

  it('holds no locks or transactions between operations', async () => {
    const { store, schema, direct, close } = await freshPostgres('pgbouncer')
    const observer = new pg.Client({ connectionString: direct })
    await observer.connect()
    const held = async () => {
      const { rows } = await observer.query(HELD, [schema])
      return rows.map(({ what }) => what)
    }
    for (const [what, operation] of everyLockOperation(store)) {
      await operation()
      // The lock of a NOTIFY disappears after a moment. A leaked lock or transaction would stay.
      await expect.poll(held, { message: `after ${what}`, timeout: 10_000 }).toEqual([])
    }
    await observer.end()
    await store.close()
    await close()
  })

  it('receives hints over a direct connection beside the pooler', async () => {
    const { store: one, schema, direct, close } = await freshPostgres('pgbouncer')
    const other = postgres({ url: await serverUrl('pgbouncer'), direct, schema })
    await one.open()
    await other.open()
    const heard = new Set<string>()
    other.subscribe((wake) => heard.add(wake))
    await one.runs.enqueue([newRun()])
    await expect.poll(() => [...heard], { timeout: 10_000 }).toContain('runs')
    await one.close()
    await other.close()
    await close()
  })

  it('finds changes by polling when LISTEN went through the pooler by mistake', async () => {
    const { store: one, schema, close } = await freshPostgres('pgbouncer')
    const other = postgres({ url: await serverUrl('pgbouncer'), schema })
    await other.open()
    for (let round = 0; round < 20; round += 1) {
      const { acquired } = await (round % 2 === 0 ? one : other).leases.acquire({ ...LOCK, holder: `holder ${round}` })
      expect(acquired).toBe(true)
      expect(await (round % 2 === 0 ? other : one).leases.release({ name: 'l', holder: `holder ${round}` })).toBe(true)
    }
    await other.close()
    await one.close()
    await close()
  })

  it('adds one error listener to a pool that several stores share, and removes it when all are closed', async () => {
    const pool = new pg.Pool({ connectionString: await serverUrl('postgres') })
    const stores = Array.from({ length: 20 }, () => postgres({ pool, listen: false }))
    expect(pool.listenerCount('error')).toBe(1)
    for (const store of stores) await store.close()
    expect(pool.listenerCount('error')).toBe(0)
    await pool.end()
  })
})

/** Locks that sessions hold on objects of a schema, and open transactions that have used it. */
const HELD = `select c.relname || ' ' || l.mode as what from pg_locks l join pg_class c on c.oid = l.relation
    join pg_stat_activity a on a.pid = l.pid
    where c.relnamespace = $1::regnamespace and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
  union all select state || ': ' || query from pg_stat_activity
    where state like 'idle in transaction%' and query like '%' || $1 || '%'
  union all select 'advisory' from pg_locks where locktype = 'advisory' and classid = ($1 || '.proofs')::regclass`

const LOCK = { name: 'l', ttlMs: LONG_LEASE_MS, permits: 1, floor: 0 }

function everyLockOperation(store: Store): [string, () => Promise<unknown>][] {
  const { leases } = store
  return [
    ['an acquire', () => leases.acquire({ ...LOCK, holder: 'a' })],
    ['a lost acquire', () => leases.acquire({ ...LOCK, holder: 'b' })],
    ['a wait', () => leases.acquire({ ...LOCK, holder: 'c', waitMs: 60_000 })],
    ['a renewal', () => leases.renew([{ ...LOCK, holder: 'a', token: 1 }])],
    ['an inspection', () => leases.inspect('l')],
    ['a list', () => leases.list({ limit: 10 })],
    ['a release', () => leases.release({ name: 'l', holder: 'a' })],
    ['a reset', () => leases.reset('l')],
  ]
}
