/**
 * A server that vanishes without a word, as when its host dies: open connections stay open and silent. Then its address
 * leads to another server. All limits follow from the lease.
 */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { type OutageProxy, outageProxy } from '../servers/outage-proxy.js'
import { startPgBouncer } from '../servers/pgbouncer.js'
import { serverUrl } from '../servers/server-url.js'
import { type LogLine, recorder } from './recorder.js'

const SCHEMA = `vanished_${process.pid}`
const LEASE_MS = 6_000
const SLOW = { timeout: 60_000, retry: 1 }

let direct = ''
let proxy: OutageProxy
let url = ''
const endings: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  direct = await serverUrl('postgres')
  await migratePostgres({ url: direct, schema: SCHEMA })
})

beforeEach(async () => {
  proxy = await outageProxy(() => Number(new URL(direct).port))
  url = Object.assign(new URL(direct), { host: `127.0.0.1:${proxy.port}` }).toString()
})

afterEach(async () => {
  await proxy.cut()
  for (const end of endings.splice(0).reverse()) await end()
})

afterAll(async () => {
  const admin = new pg.Client({ connectionString: direct })
  await admin.connect()
  await admin.query(`drop schema ${SCHEMA} cascade`)
  await admin.end()
})

/** A pool that keeps its connections, all of which have been used. */
async function keepingPool(connectionString: string, max: number): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString, max, idleTimeoutMillis: 0 })
  const clients = await Promise.all(Array.from({ length: max }, () => pool.connect()))
  await Promise.all(clients.map((client) => client.query('select pg_sleep(0.1)')))
  for (const client of clients) client.release()
  endings.push(() => pool.end())
  return pool
}

/** An instance with a schedule that ticks every second. */
async function ticking(reached: PostgresOptions) {
  const lines: LogLine[] = []
  const store = postgres({ ...reached, schema: SCHEMA })
  const belfry = createBelfry({ store, lease: LEASE_MS, poll: 200, logger: recorder(lines) })
  const startedAt: number[] = []
  const job = belfry.job('tick', {
    run: () => {
      startedAt.push(performance.now())
    },
  })
  await belfry.schedules.put('vanished', { every: '1s', job: job.name })
  await belfry.start()
  await expect.poll(() => startedAt.length, { timeout: 10_000 }).toBeGreaterThan(1)
  const warned = () => lines.some(({ level }) => level === 'warn')
  return { belfry, startedAt, warned }
}

/** How long no tick runs after the server has vanished. */
async function pauseMs(reached: PostgresOptions): Promise<number> {
  const { belfry, startedAt } = await ticking(reached)
  const vanishedAt = performance.now()
  proxy.swallow()
  // A claim may have been answered just before.
  const next = () => startedAt.find((at) => at > vanishedAt + 200)
  await expect.poll(next, { timeout: 40_000 }).toBeDefined()
  await belfry.schedules.remove('vanished')
  await belfry.stop()
  return (next() ?? Number.POSITIVE_INFINITY) - vanishedAt
}

describe('when the server vanishes and its address leads to another, ticks run again within one lease', () => {
  it('with a URL', SLOW, async () => {
    expect(await pauseMs({ url })).toBeLessThan(LEASE_MS)
  })

  it('with a pool of the user’s that keeps thirty idle connections', SLOW, async () => {
    expect(await pauseMs({ pool: await keepingPool(url, 30) })).toBeLessThan(LEASE_MS)
  })

  it('through PgBouncer, which keeps its own connections to the server', SLOW, async () => {
    const pooler = await startPgBouncer(url)
    endings.push(() => pooler.stop())
    expect(await pauseMs({ pool: await keepingPool(pooler.url, 10) })).toBeLessThan(LEASE_MS)
  })
})

it(
  'while its address leads nowhere, a warning comes within one lease, and ticks run again soon after it is back',
  SLOW,
  async () => {
    const { belfry, startedAt, warned } = await ticking({ pool: await keepingPool(url, 10) })
    const vanishedAt = performance.now()
    proxy.swallow('andNew')
    await expect.poll(warned, { timeout: 40_000 }).toBe(true)
    expect(performance.now() - vanishedAt).toBeLessThan(LEASE_MS)
    await proxy.restore()
    const backAt = performance.now()
    await expect.poll(() => startedAt.at(-1), { timeout: 40_000 }).toBeGreaterThan(backAt)
    expect(performance.now() - backAt).toBeLessThan(LEASE_MS)
    await belfry.stop({ grace: 0 })
  },
)

it(
  'an enqueue in flight, which may take half a minute, ends when another connection has become silent',
  SLOW,
  async () => {
    const store = postgres({ pool: await keepingPool(url, 4), schema: SCHEMA, listen: false })
    await store.open()
    const belfry = createBelfry({ store, lease: LEASE_MS, roles: [] })
    await belfry.start()
    const sentAt = performance.now()
    proxy.swallow()
    const enqueued = store.runs.enqueue([newRun()]).catch((error: unknown) => error)
    const { instances } = store
    const info = { id: 'another', host: 'h', pid: 1, zoneData: 'x', jobs: [] }
    await instances.join(info, LEASE_MS)
    expect(await enqueued).toMatchObject({ code: 'STORE_UNREACHABLE' })
    expect(performance.now() - sentAt).toBeLessThan(LEASE_MS)
    await belfry.stop()
  },
)
