/** A server that goes away, comes back, refuses and fails over, under an instance that is at work. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { type Clock, systemClock } from '../../src/core/clock.js'
import type { Lease } from '../../src/core/lease.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { type OwnPostgres, ownPostgres } from './own-postgres.js'
import { type LogLine, recorder } from './recorder.js'

const PATIENT = { timeout: 30_000, interval: 20 }
const UNREACHABLE = 'store unreachable: nothing starts until it answers; still trying'
const RECOVERED = 'store answers again'

let server: OwnPostgres
const belfries: Belfry[] = []

beforeAll(async () => {
  // What nobody waits for on the disk is not there when the server crashes.
  server = await ownPostgres({ max_connections: '30', wal_writer_delay: '10s' })
  // Superusers may use the connections that are kept for them, and are held to no limit.
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

/** An instance with something to do every second, and whatever else is enqueued. */
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

/** What was said about the store, in order: how often and how loudly. */
function said(lines: readonly LogLine[]): string[] {
  return lines.filter(({ level }) => level !== 'debug').map(({ level, message }) => `${level}: ${message}`)
}

async function untilSaid({ lines }: Work, message: string): Promise<void> {
  await expect.poll(() => lines.some((line) => line.message === message), PATIENT).toBe(true)
}

const ONCE_AND_OVER = [`warn: ${UNREACHABLE}`, `info: ${RECOVERED}`]

/** A lock is handed to somebody by another process, without his hearing of it. What he is told when he then asks. */
async function handedUnheard(): Promise<Lease | undefined> {
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
  it('says nothing when its connections are cut now and then, and loses nothing', async () => {
    const work = await atWork()
    for (let round = 0; round < 5; round += 1) {
      await server.sql(CUT)
      await goesOn(work)
    }
    expect(said(work.lines)).toEqual([])
    const { items } = await work.belfry.runs.list({ schedule: 'every-second', limit: 1_000 })
    expect(items.filter(({ attempt }) => attempt > 1)).toEqual([])
  })

  it('says once that a crashed server is gone, and once that it is back', async () => {
    const work = await atWork()
    await server.stop('immediate')
    await untilSaid(work, UNREACHABLE)
    await sleep(3_000)
    await server.start()
    await untilSaid(work, RECOVERED)
    await goesOn(work)
    expect(said(work.lines)).toEqual(ONCE_AND_OVER)
  })

  it('gives its work up in time when the server stays away for longer than the lease, and says so once', async () => {
    const work = await atWork({}, '1s')
    await server.stop('fast')
    await expect.poll(() => work.lines.some(({ message }) => message.startsWith('lost the lease')), PATIENT).toBe(true)
    await sleep(2_000)
    await server.start()
    await untilSaid(work, RECOVERED)
    await goesOn(work)
    const given = work.lines.filter(({ message }) =>
      message.startsWith('lost the lease: no beat has reached the store'),
    )
    expect(given).toHaveLength(1)
    // Whatever it was at when the server went away it takes over from its former self.
    const others = work.lines.filter((line) => !given.includes(line) && !line.message.startsWith('took over runs'))
    expect(said(others)).toEqual(ONCE_AND_OVER)
  })

  it('goes on when a crashed server is back before anybody had to be told', async () => {
    const work = await atWork({ liveness: 'advisory' })
    await server.stop('immediate')
    await server.start()
    await goesOn(work)
    expect(said(work.lines).filter((line) => line.startsWith('error'))).toEqual([])
    // A server that recovers answers, and is gone again for a moment: that may be said, each time once.
    expect(said(work.lines).filter((line) => line.includes(UNREACHABLE)).length).toBeLessThanOrEqual(3)
  })

  it('takes a server that has become read-only for one that is gone, until it is not', async () => {
    const work = await atWork()
    await server.sql('alter role app set default_transaction_read_only = on')
    await server.sql(CUT)
    await untilSaid(work, UNREACHABLE)
    const [line] = work.lines.filter(({ level }) => level === 'warn')
    expect(line?.fields).toMatchObject({ err: { message: /is read-only, as after a failover/ } })
    await sleep(1_000)
    // Nobody cuts anything now: connections to a server that cannot be used are given up by themselves.
    await server.sql('alter role app reset default_transaction_read_only')
    await untilSaid(work, RECOVERED)
    await goesOn(work)
    expect(said(work.lines)).toEqual(ONCE_AND_OVER)
  })

  it('takes a server that has no connection left for one that is gone, until it has', async () => {
    const work = await atWork()
    await server.sql('alter role app connection limit 0')
    await server.sql(CUT)
    await untilSaid(work, UNREACHABLE)
    const [line] = work.lines.filter(({ level }) => level === 'warn')
    expect(line?.fields).toMatchObject({ err: { message: /has no connection left/ } })
    await sleep(1_000)
    await server.sql('alter role app connection limit -1')
    await untilSaid(work, RECOVERED)
    await goesOn(work)
    expect(said(work.lines)).toEqual(ONCE_AND_OVER)
  })
})

describe('a postgres store', () => {
  it('says what to do when max_connections are used up, and goes on when they are not', async () => {
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

  it('knows after a crash what was taken, and what was given back is free as soon as its time is over', async () => {
    const belfry = createBelfry({ store: postgres({ url: appUrl() }) })
    belfries.push(belfry)
    await belfry.lock('taken', { ttl: '5m' })
    const first = await belfry.lock('back', { ttl: '2s' })
    const held = await belfry.lock('held on to', { ttl: '2s', minHold: '5m' })
    await held?.release()
    const told = await handedUnheard()
    await first?.release()
    await server.stop('immediate')
    await server.start()
    expect(await belfry.lock('taken')).toBeUndefined()
    const second = await belfry.lock('back', { wait: '20s' })
    expect(second?.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
    expect(await belfry.locks.inspect('held on to')).toMatchObject([{ released: true }])
    expect(await belfry.locks.inspect('line')).toMatchObject([told])
  })

  it('waits a moment for a server that lets nobody in, instead of failing', async () => {
    await server.sql('alter role app connection limit 0')
    const letIn = server.sql.bind(undefined, 'alter role app connection limit -1')
    const waits: number[] = []
    const clock: Clock = {
      ...systemClock,
      after: (delayMs, callback) => {
        // A limit, not a pause between two tries.
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

  it('refuses a database in which not every result could be written down', async () => {
    await server.sql(`create database latin encoding 'LATIN1' template template0`)
    const store = postgres({ url: appUrl().replace('/postgres', '/latin'), migrate: true })
    await expect(store.open()).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /UTF8, and this one has LATIN1/ })
    await store.close()
  })

  it('never ends a pool that it was given, and leaves its listeners as they were', async () => {
    const pool = new pg.Pool({ connectionString: appUrl() })
    const heard: Error[] = []
    pool.on('error', (error) => heard.push(error))
    const store = postgres({ pool, listen: false })
    await store.now()
    // The user's own handler hears of it, as if there were no store.
    await server.sql(CUT)
    await expect.poll(() => heard.length, PATIENT).toBe(1)
    await store.close()
    expect(pool.listenerCount('error')).toBe(1)
    expect((await pool.query('select 1')).rowCount).toBe(1)
    await pool.end()
  })

  it('lets a process live whose pool has no listener when an idle connection is cut', async () => {
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

  it('ends the pool and the connection that it made itself', async () => {
    const store = postgres({ url: appUrl(), liveness: 'advisory' })
    await store.open()
    const connections = `select 1 from pg_stat_activity where usename = 'app'`
    expect((await server.sql(connections)).length).toBeGreaterThan(1)
    await store.close()
    await expect.poll(() => server.sql(connections), PATIENT).toEqual([])
  })
})
