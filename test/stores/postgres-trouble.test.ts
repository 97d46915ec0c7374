/** Outages of the server, refusals and failovers, while an instance works. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { type Clock, systemClock } from '../../src/core/clock.js'
import type { Lease } from '../../src/core/locks/lease.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { type OwnPostgres, ownPostgres } from './own-postgres.js'
import { type LogLine, recorder } from './recorder.js'

const PATIENT = { timeout: 30_000, interval: 20 }
const UNREACHABLE = 'store unreachable: nothing starts until it answers; still trying'
const RECOVERED = 'store answers again'

let server: OwnPostgres
const belfries: Belfry[] = []

beforeAll(async () => {
  // The WAL writer pauses for 10 s, so a crash loses the writes whose commit did not wait for the disk.
  server = await ownPostgres({ max_connections: '30', wal_writer_delay: '10s' })
  // The app is no superuser: a superuser may use reserved connections, and ignores connection limits.
  await server.sql('create role app login; grant create on database postgres to app')
  await migratePostgres({ url: appUrl() })
}, 120_000)

afterEach(() => Promise.all(belfries.splice(0).map((belfry) => belfry.stop({ grace: 0 }))))
afterAll(() => server.remove())

function appUrl(): string {
  return server.url.replace('belfry@', 'app@')
}

/** Cuts every connection of the app. */
const CUT = `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`

interface Work {
  readonly belfry: Belfry
  readonly lines: LogLine[]
  /** How many runs have ended. */
  readonly done: () => number
}

/** An instance with a schedule that ticks every second, and a job. */
async function atWork(options: Partial<PostgresOptions> = {}, lease = '30s'): Promise<Work> {
  const lines: LogLine[] = []
  const where = options.pool === undefined ? { url: appUrl() } : {}
  const belfry = createBelfry({
    store: postgres({ ...where, ...options }),
    ...{ lease, poll: '50ms', logger: recorder(lines) },
  })
  belfries.push(belfry)
  let done = 0
  const job = belfry.job('work', {
    run: () => {
      done += 1
    },
  })
  belfry.schedule('every-second', { every: '1s', job })
  await belfry.start()
  const work = { belfry, lines, done: () => done }
  await goesOn(work)
  return work
}

async function goesOn({ done }: Work): Promise<void> {
  const before = done()
  await expect.poll(done, PATIENT).toBeGreaterThan(before)
}

/** The log lines about the store: their levels and messages, in order. */
function logged(lines: readonly LogLine[]): string[] {
  return lines.filter(({ level }) => level !== 'debug').map(({ level, message }) => `${level}: ${message}`)
}

async function untilLogged({ lines }: Work, message: string): Promise<void> {
  await expect.poll(() => lines.some((line) => line.message === message), PATIENT).toBe(true)
}

const ONCE_AND_OVER = [`warn: ${UNREACHABLE}`, `info: ${RECOVERED}`]

/**
 * Releases a lock in one process for a waiter in another that receives no hints, and returns the lease that the waiter
 * gets when it asks again.
 */
async function handedWithoutHint(): Promise<Lease | undefined> {
  const stores = [postgres({ url: appUrl(), listen: false }), postgres({ url: appUrl(), listen: false })] as const
  const ask = (at: 0 | 1, holder: string, ttlMs: number) =>
    stores[at].leases.acquire({ name: 'line', holder, ttlMs, permits: 1, floor: 0, waitMs: 60_000 })
  await ask(0, 'a', 60_000)
  await ask(1, 'b', 60_000)
  await stores[0].leases.release({ name: 'line', holder: 'a' })
  const answer = await ask(1, 'b', 600_000)
  await Promise.all(stores.map((store) => store.close()))
  return answer.acquired ? answer.lease : undefined
}

describe('an instance at work on Postgres', () => {
  it('logs nothing when its connections are cut now and then, and loses nothing', async () => {
    const work = await atWork()
    for (let round = 0; round < 5; round += 1) {
      await server.sql(CUT)
      await goesOn(work)
    }
    expect(logged(work.lines)).toEqual([])
    const { items } = await work.belfry.runs.list({ schedule: 'every-second', limit: 1_000 })
    expect(items.filter(({ attempt }) => attempt > 1)).toEqual([])
  })

  it('logs the outage of a crashed server once, and its recovery once', async () => {
    const work = await atWork()
    await server.stop('immediate')
    await untilLogged(work, UNREACHABLE)
    await sleep(3_000)
    await server.start()
    await untilLogged(work, RECOVERED)
    await goesOn(work)
    expect(logged(work.lines)).toEqual(ONCE_AND_OVER)
  })

  it('gives up its work in time when an outage outlasts the lease, and logs that once', async () => {
    const work = await atWork({}, '1s')
    await server.stop('fast')
    await expect.poll(() => work.lines.some(({ message }) => message.startsWith('lost the lease')), PATIENT).toBe(true)
    await sleep(2_000)
    await server.start()
    await untilLogged(work, RECOVERED)
    await goesOn(work)
    const given = work.lines.filter(({ message }) =>
      message.startsWith('lost the lease: no beat has reached the store'),
    )
    expect(given).toHaveLength(1)
    // The instance has joined under a new id, so it takes over its own former runs.
    const others = work.lines.filter((line) => !given.includes(line) && !line.message.startsWith('took over runs'))
    expect(logged(others)).toEqual(ONCE_AND_OVER)
  })

  it('continues when a crashed server recovers before the outage is logged', async () => {
    const work = await atWork({ liveness: 'advisory' })
    await server.stop('immediate')
    await server.start()
    await goesOn(work)
    expect(logged(work.lines).filter((line) => line.startsWith('error'))).toEqual([])
    // A recovering server may answer and then be unreachable again for a moment. Each such outage may be logged once.
    expect(logged(work.lines).filter((line) => line.includes(UNREACHABLE)).length).toBeLessThanOrEqual(3)
  })

  it('treats a read-only server as unreachable until it is writable', async () => {
    const work = await atWork()
    await server.sql('alter role app set default_transaction_read_only = on')
    await server.sql(CUT)
    await untilLogged(work, UNREACHABLE)
    const [line] = work.lines.filter(({ level }) => level === 'warn')
    expect(line?.fields).toMatchObject({
      err: { message: /lets this role only read: default_transaction_read_only is on/ },
    })
    await sleep(1_000)
    // The test cuts no connection this time: the store itself closes its connections to a read-only server.
    await server.sql('alter role app reset default_transaction_read_only')
    await untilLogged(work, RECOVERED)
    await goesOn(work)
    expect(logged(work.lines)).toEqual(ONCE_AND_OVER)
  })

  it('treats a server without free connections as unreachable until it has one', async () => {
    const work = await atWork()
    await server.sql('alter role app connection limit 0')
    await server.sql(CUT)
    await untilLogged(work, UNREACHABLE)
    const [line] = work.lines.filter(({ level }) => level === 'warn')
    expect(line?.fields).toMatchObject({ err: { message: /has no connection left/ } })
    await sleep(1_000)
    await server.sql('alter role app connection limit -1')
    await untilLogged(work, RECOVERED)
    await goesOn(work)
    expect(logged(work.lines)).toEqual(ONCE_AND_OVER)
  })
})

describe('a postgres store', () => {
  it('explains an exhausted max_connections, and continues when connections are free', async () => {
    const hogs: pg.Client[] = []
    for (;;) {
      const hog = new pg.Client({ connectionString: appUrl() })
      hog.on('error', () => {})
      try {
        await hog.connect()
        hogs.push(hog)
      } catch {
        break
      }
    }
    const store = postgres({ url: appUrl(), listen: false })
    await expect(store.now()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', message: /smaller pool, or a pooler/ })
    await Promise.all(hogs.map((hog) => hog.end()))
    await expect.poll(() => store.now().catch(() => 0), PATIENT).toBeGreaterThan(0)
    await store.close()
  })

  it('keeps acquired locks after a crash, and frees released ones at the latest when their time is over', async () => {
    const belfry = createBelfry({ store: postgres({ url: appUrl() }) })
    belfries.push(belfry)
    await belfry.lock('taken', { ttl: '5m' })
    const first = await belfry.lock('back', { ttl: '2s' })
    const held = await belfry.lock('held on to', { ttl: '2s', minHold: '5m' })
    await held?.release()
    const told = await handedWithoutHint()
    await first?.release()
    await server.stop('immediate')
    await server.start()
    expect(await belfry.lock('taken')).toBeUndefined()
    const second = await belfry.lock('back', { wait: '20s' })
    expect(second?.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
    expect(await belfry.locks.inspect('held on to')).toMatchObject([{ released: true }])
    expect(await belfry.locks.inspect('line')).toMatchObject([told])
  })

  it('waits a moment for a server that accepts no connections, instead of failing', async () => {
    await server.sql('alter role app connection limit 0')
    const letIn = server.sql.bind(undefined, 'alter role app connection limit -1')
    const waits: number[] = []
    const clock: Clock = {
      ...systemClock,
      after: (delayMs, callback) => {
        // A longer delay is the time limit of a statement, not a pause between two tries.
        if (delayMs > 1_000) return systemClock.after(delayMs, callback)
        waits.push(delayMs)
        void (waits.length === 2 ? letIn() : Promise.resolve()).then(callback)
        return () => {}
      },
    }
    const store = postgres({ url: appUrl(), listen: false, clock })
    expect(await store.now()).toBeGreaterThan(0)
    expect(waits).toHaveLength(2)
    await store.close()
  })

  it('refuses a database whose encoding cannot store every text', async () => {
    await server.sql(`create database latin encoding 'LATIN1' template template0`)
    const store = postgres({ url: appUrl().replace('/postgres', '/latin'), migrate: true })
    await expect(store.open()).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /UTF8, and this one has LATIN1/ })
    await store.close()
  })

  it('never ends the user’s pool, and leaves its listeners as they were', async () => {
    const pool = new pg.Pool({ connectionString: appUrl() })
    const heard: Error[] = []
    pool.on('error', (error) => heard.push(error))
    const store = postgres({ pool, listen: false })
    await store.now()
    // The user's own listener is still called.
    await server.sql(CUT)
    await expect.poll(() => heard.length, PATIENT).toBe(1)
    await store.close()
    expect(pool.listenerCount('error')).toBe(1)
    expect((await pool.query('select 1')).rowCount).toBe(1)
    await pool.end()
  })

  it('keeps the process alive when an idle connection of a pool without listeners is cut', async () => {
    const pool = new pg.Pool({ connectionString: appUrl() })
    const store = postgres({ pool, listen: false })
    await store.now()
    expect(pool.idleCount).toBe(1)
    await server.sql(CUT)
    await expect.poll(() => pool.totalCount, PATIENT).toBe(0)
    expect(await store.now()).toBeGreaterThan(0)
    await store.close()
    await pool.end()
  })

  it('ends the pool and the connection that it opened itself', async () => {
    const store = postgres({ url: appUrl(), liveness: 'advisory' })
    await store.open()
    const connections = `select 1 from pg_stat_activity where usename = 'app'`
    expect((await server.sql(connections)).length).toBeGreaterThan(1)
    await store.close()
    await expect.poll(() => server.sql(connections), PATIENT).toEqual([])
  })
})
