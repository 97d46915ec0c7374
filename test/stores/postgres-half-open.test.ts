/**
 * Half-open connections: open as far as both ends can tell, while the network swallows the bytes of one direction. No
 * side gets an error, so every wait needs a limit. With a lease of 3 s, statements have a limit of 1 s.
 */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { type Clock, systemClock } from '../../src/core/clock.js'
import { silentLogger } from '../../src/core/logger.js'
import { plan } from '../../src/core/schedules/plan.js'
import type { Store } from '../../src/core/store.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { serverUrl } from '../servers/server-url.js'
import { effectsTable } from './effects-table.js'
import { type LossyProxy, lossyProxy } from './lossy-proxy.js'
import { gate, type Tx, transactOn } from './transaction-scene.js'

const SCHEMA = `half_open_${process.pid}`
const LEASE_MS = 3_000
/** Half of the longest limit, 30 s. The limit that follows from the lease takes less, even on a slow machine. */
const SOON_MS = 15_000
const SLOW = { timeout: 60_000 }

interface Scene {
  /** No other scene uses these names, because all scenes share a schema. */
  readonly instance: string
  readonly job: string
  readonly proxy: LossyProxy
  readonly pool: pg.Pool
  readonly store: Store
  readonly table: Awaited<ReturnType<typeof effectsTable>>
  close(): Promise<void>
}

let made = 0

async function halfOpenScene(server: string): Promise<Scene> {
  const proxy = await lossyProxy(new URL(server))
  const table = await effectsTable()
  const pool = new pg.Pool({ connectionString: proxy.url, max: 5 })
  const store = postgres({ pool, schema: SCHEMA, listen: false })
  await store.open()
  made += 1
  const [instance, job] = [`instance-${made}`, `bill-${made}`]
  await store.instances.join({ id: instance, host: 'h', pid: 1, zoneData: 'x', jobs: [] }, LEASE_MS)
  return {
    ...{ instance, job },
    ...{ proxy, pool, store, table },
    async close() {
      await store.close()
      proxy.close()
      await pool.end()
      await table.drop()
    },
  }
}

let at: Scene
/** Reaches the server without the proxy. */
let direct = ''

beforeAll(async () => {
  direct = await serverUrl('postgres')
  await migratePostgres({ url: direct, schema: SCHEMA })
})

beforeEach(async () => {
  at = await halfOpenScene(direct)
})

afterAll(async () => {
  const admin = new pg.Pool({ connectionString: direct })
  await admin.query(`drop schema ${SCHEMA} cascade`)
  await admin.end()
})

afterEach(() => at.close())

/** Opens all connections of the pool before they go silent. */
async function openAll(): Promise<void> {
  const clients = await Promise.all(Array.from({ length: 5 }, () => at.pool.connect()))
  for (const client of clients) client.release()
  await Promise.all(Array.from({ length: 5 }, () => at.store.now()))
}

async function claimed() {
  await at.store.runs.enqueue([newRun({ target: { job: at.job } })])
  const [run] = (await at.store.runs.claim(claimOf())).runs
  if (run === undefined) throw new Error('nothing to claim')
  return run
}

let claims = 0
function claimOf() {
  claims += 1
  return { instance: at.instance, claim: claims, limit: 10, jobs: [{ name: at.job, limit: 10 }], sinks: [], floor: 0 }
}

async function within<Result>(limitMs: number, work: () => Promise<Result>): Promise<Result> {
  const began = performance.now()
  const result = await work()
  expect(performance.now() - began).toBeLessThan(limitMs)
  return result
}

describe.each(['answers', 'requests'] as const)('a pool of half-open connections that drop %s', (what) => {
  it('delays a beat, a claim and a settlement by about a third of the lease, and only once', SLOW, async () => {
    await at.store.runs.enqueue([newRun({ target: { job: at.job } })])
    const claim = claimOf()
    await openAll()
    at.proxy.swallow(what)
    const { runs } = await within(SOON_MS, () => at.store.runs.claim(claim))
    expect(runs).toHaveLength(1)
    const [{ id = '', token = 0 } = {}] = runs

    await openAll()
    at.proxy.swallow(what)
    const attempts = [{ run: id, token }]
    const beat = { instance: at.instance, leaseMs: LEASE_MS, attempts, claimsSettled: claim.claim }
    expect(await within(SOON_MS, () => at.store.instances.beat(beat))).toMatchObject({ alive: true, lost: [] })

    await openAll()
    at.proxy.swallow(what)
    const settlement = { run: id, token, outcome: { kind: 'succeeded' } } as const
    expect(await within(SOON_MS, () => at.store.runs.settle([settlement]))).toEqual(['settled'])
  })

  it('delays an advance no longer than that, and its row locks are released', SLOW, async () => {
    await openAll()
    at.proxy.swallow(what)
    const plan = () => {
      throw new Error('nothing is due')
    }
    const advance = { limit: 10, lookaheadMs: 0, plan }
    expect(await within(SOON_MS, () => at.store.schedules.advance(advance))).toMatchObject({ schedules: 0 })
  })

  it('lets the runs of an instance start before its lease is over', SLOW, async () => {
    const store = postgres({ pool: at.pool, schema: SCHEMA, listen: false })
    const belfry = createBelfry({ store, lease: LEASE_MS, poll: 100, logger: silentLogger })
    let ran = 0
    const job = belfry.job(at.job, {
      run: () => {
        ran += 1
      },
    })
    await belfry.start()
    const other = postgres({ url: direct, schema: SCHEMA, listen: false })
    await other.open()
    await openAll()
    at.proxy.swallow(what)
    await other.runs.enqueue(Array.from({ length: 20 }, () => newRun({ target: { job: job.name } })))
    await expect.poll(() => ran, { timeout: SOON_MS }).toBe(20)
    await belfry.stop()
    await other.close()
  })
})

describe('a process that loses its network while it records ticks', () => {
  it('holds up the schedule for a third of the lease, although it cannot end its transaction itself', {
    ...SLOW,
    retry: 1,
  }, async () => {
    const other = postgres({ url: direct, schema: SCHEMA, listen: false })
    const belfry = createBelfry({ store: other, roles: [], logger: silentLogger })
    await belfry.schedules.put(`half-open/${at.instance}`, { at: new Date(), job: at.job })
    let hasPlanned = false
    const lost = at.store.schedules.advance({
      ...{ limit: 10, lookaheadMs: 0 },
      plan: (...given) => {
        at.proxy.swallow('requests')
        at.proxy.refuse()
        hasPlanned = true
        return plan(...given)
      },
    })
    lost.catch(() => {})
    await expect.poll(() => hasPlanned, { timeout: SOON_MS }).toBe(true)
    const began = performance.now()
    const advance = () => other.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
    await expect.poll(async () => (await advance()).recorded, { timeout: SOON_MS, interval: 50 }).toBe(1)
    // The server ends the transaction at its limit of 1 s (plus room for a slow machine), and not only after 5 s, when
    // the process gives up its connection.
    expect(performance.now() - began).toBeLessThan(4_000)
    await belfry.stop()
  })
})

describe('transaction() on a half-open connection', () => {
  const transact = (run: { readonly id: string; readonly token: number }, work: (tx: Tx) => unknown) =>
    transactOn(at.store, run, work)
  const write = (tx: Tx, what: string) => tx.query(`insert into ${at.table.name} (what) values ($1)`, [what])

  /** How many backends hold locks on the table. */
  async function openTransactions(): Promise<number> {
    const { rows } = await at.table.pool.query(
      `select count(*)::integer as count from pg_locks l join pg_class c on c.oid = l.relation
       where c.relname = $1 and l.pid <> pg_backend_pid()`,
      [at.table.name],
    )
    return rows[0].count
  }

  it('finds the commit when its answer was swallowed', SLOW, async () => {
    const run = await claimed()
    const outcome = await within(SOON_MS, () =>
      transact(run, async (tx) => {
        await write(tx, 'paid')
        at.proxy.swallow('answers')
        return 'receipt'
      }),
    )
    expect(outcome).toEqual({ result: 'receipt' })
    expect(await at.table.effects()).toEqual(['paid'])
  })

  it('finds that the commit never arrived, and ends its backend', SLOW, async () => {
    const run = await claimed()
    const outcome = within(SOON_MS, () =>
      transact(run, async (tx) => {
        await write(tx, 'paid')
        at.proxy.swallow('requests')
      }).catch((error: unknown) => error),
    )
    expect(await outcome).toMatchObject({ code: 'STORE_UNREACHABLE', message: /no answer for 1000 ms/ })
    await expect.poll(openTransactions).toBe(0)
    expect(await at.table.effects()).toEqual([])
    expect(await transact(run, (tx) => write(tx, 'paid').then(() => 'second try'))).toEqual({ result: 'second try' })
  })

  it.each(['answers', 'requests'] as const)(
    'ends a callback whose statement waits for dropped %s',
    SLOW,
    async (what) => {
      const run = await claimed()
      const outcome = within(SOON_MS, () =>
        transact(run, async (tx) => {
          await write(tx, 'half')
          at.proxy.swallow(what)
          await write(tx, 'other half')
        }).catch((error: unknown) => error),
      )
      expect(await outcome).toMatchObject({ code: 'STORE_UNREACHABLE' })
      await expect.poll(openTransactions).toBe(0)
      expect(await at.table.effects()).toEqual([])
    },
  )

  it('waits for a statement that the server is still executing, however long it takes', SLOW, async () => {
    const run = await claimed()
    const slow = transact(run, async (tx) => {
      await tx.query('select pg_sleep(4)')
      await write(tx, 'slow')
      return 'done'
    })
    expect(await slow).toEqual({ result: 'done' })
  })

  it('begins over another connection when the first does not answer', SLOW, async () => {
    const run = await claimed()
    await openAll()
    at.proxy.swallow('answers')
    expect(await within(SOON_MS, () => transact(run, () => 'begun'))).toEqual({ result: 'begun' })
  })

  it('frees its slot when the connection is closed, before the outcome is known', SLOW, async () => {
    // A pool of three leaves one slot for handlers.
    const pool = new pg.Pool({ connectionString: at.proxy.url, max: 3 })
    const store = postgres({ pool, schema: SCHEMA, listen: false })
    const [first, second] = [await claimed(), await claimed()]
    await store.instances.join({ id: `${at.instance}-too`, host: 'h', pid: 1, zoneData: 'x', jobs: [] }, LEASE_MS)
    const hung = transactOn(store, first, () => at.proxy.swallow('requests')).catch((error: unknown) => error)
    expect(await within(SOON_MS, () => transactOn(store, second, () => 'next'))).toEqual({ result: 'next' })
    expect(await hung).toMatchObject({ code: 'STORE_UNREACHABLE' })
    await store.close()
    await pool.end()
  })

  it('ends for its handler before the next run of the key begins in another process', SLOW, async () => {
    const order: string[] = []
    const [committing, done] = [gate(), gate()]
    const exclusive = { by: () => at.job, limit: 1, whenBusy: 'wait' } as const
    const here = createBelfry({ store: at.store, lease: LEASE_MS, poll: 100, logger: silentLogger })
    const bill = here.job(at.job, {
      exclusive,
      retry: { attempts: 1 },
      run: async ({ transaction }) => {
        await transaction(async (tx: Tx) => {
          await write(tx, 'paid')
          // From here on the process receives nothing, and cannot connect again.
          at.proxy.swallow('answers')
          at.proxy.refuse()
          committing.open()
        }).catch((error: { readonly code?: string }) => order.push(`old handler: ${error.code}`))
      },
    })
    await here.start()
    await bill.enqueue(null)
    await committing.opened
    const there = createBelfry({
      store: postgres({ url: direct, schema: SCHEMA }),
      ...{ lease: LEASE_MS, poll: 100, logger: silentLogger },
    })
    const next = there.job(at.job, {
      exclusive,
      run: () => {
        order.push('successor')
        done.open()
      },
    })
    await there.start()
    await next.enqueue(null)
    await done.opened
    expect(order).toEqual(['old handler: LEASE_LOST', 'successor'])
    expect(await at.table.effects()).toEqual(['paid'])
    await there.stop()
    await here.stop({ grace: 0 })
  })
})

describe('the connection that listens', () => {
  it('is replaced when it is half-open, and hints arrive again', SLOW, async () => {
    // Probes the connection every second instead of every ten.
    const clock: Clock = { ...systemClock, after: (delayMs, callback) => systemClock.after(delayMs / 10, callback) }
    const store = postgres({ pool: at.table.pool, direct: at.proxy.url, schema: SCHEMA, clock })
    const wakes: string[] = []
    store.subscribe((wake) => wakes.push(wake))
    await store.open()
    at.proxy.swallow('answers')
    // A new connection hints at every kind of change.
    await expect.poll(() => new Set(wakes).size, { timeout: SOON_MS }).toBe(5)
    wakes.length = 0
    const other = postgres({ url: direct, schema: SCHEMA })
    await other.runs.enqueue([newRun({ target: { job: at.job } })])
    await expect.poll(() => wakes, { timeout: SOON_MS }).toContain('runs')
    await Promise.all([store.close(), other.close()])
  })
})

describe('transaction() through PgBouncer', () => {
  it('notices a half-open connection to the pooler, and frees the backend', SLOW, async () => {
    await at.close()
    at = await halfOpenScene(await serverUrl('pgbouncer'))
    const run = await claimed()
    const outcome = within(SOON_MS, () =>
      transactOn(at.store, run, async (tx) => {
        await tx.query(`insert into ${at.table.name} (what) values ('half')`)
        at.proxy.swallow('answers')
        await tx.query('select 1')
      }).catch((error: unknown) => error),
    )
    expect(await outcome).toMatchObject({ code: 'STORE_UNREACHABLE' })
    await within(SOON_MS, () => at.table.pool.query(`insert into ${at.table.name} (what) values ('half')`))
  })
})
