/** When a holder's connection dies, its locks and runs are free at once, before any heartbeat or TTL expires. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/server-url.js'
import { lossyProxy } from './lossy-proxy.js'
import { type LogLine, recorder } from './recorder.js'

const SCHEMA = `advisory_${process.pid}`
const HOLDER = fileURLToPath(new URL('./postgres-holder.js', import.meta.url))
/** Far below the leases of these tests, and more than a busy machine needs. */
const SOON_MS = 5_000

let url = ''
let admin: pg.Pool
const children: ChildProcess[] = []
const belfries: Belfry[] = []
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  url = await serverUrl('postgres')
  admin = new pg.Pool({ connectionString: url, max: 2 })
  await migratePostgres({ pool: admin, schema: SCHEMA })
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await Promise.all(belfries.splice(0).map((belfry) => belfry.stop({ grace: 0 })))
  for (const cleanup of cleanups.splice(0)) await cleanup()
  const { rows } = await admin.query(
    `select tablename from pg_tables where schemaname = '${SCHEMA}' and tablename <> 'meta'`,
  )
  for (const { tablename } of rows) await admin.query(`delete from ${SCHEMA}.${tablename}`)
})

afterAll(async () => {
  await admin.query(`drop schema ${SCHEMA} cascade`)
  await admin.end()
})

function instance(options: Partial<PostgresOptions> = {}, lines: LogLine[] = []): Belfry {
  const where = options.pool === undefined ? { url } : {}
  const store = postgres({ ...where, schema: SCHEMA, liveness: 'advisory', ...options })
  const belfry = createBelfry({ store, lease: '60s', poll: '50ms', logger: recorder(lines) })
  belfries.push(belfry)
  return belfry
}

async function holder(liveness: 'advisory' | 'lease', what: 'lock' | 'run'): Promise<ChildProcess> {
  const child = spawn(process.execPath, [HOLDER, url, SCHEMA, liveness, what], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const [output] = await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  expect(String(output)).toBe('held\n')
  return child
}

/** Terminates the backends that hold an advisory lock as proof of life. */
async function cutDirectConnections(): Promise<void> {
  const { rowCount } = await admin.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
      and classid = '${SCHEMA}.proofs'::regclass::oid and mode = 'ExclusiveLock'`,
  )
  expect(rowCount).toBeGreaterThan(0)
}

async function msUntil(condition: () => unknown): Promise<number> {
  const startedAt = performance.now()
  await expect.poll(condition, { timeout: 20_000, interval: 10 }).toBeTruthy()
  return performance.now() - startedAt
}

describe('in the advisory mode of the postgres store', () => {
  it('the lock of a killed process is free at once, although its lease is a minute', async () => {
    const child = await holder('advisory', 'lock')
    const belfry = instance()
    await belfry.start()
    expect(await belfry.lock('a')).toBeUndefined()
    const [held] = await belfry.locks.inspect('a')
    child.kill('SIGKILL')
    let lock: Awaited<ReturnType<Belfry['lock']>>
    const tookMs = await msUntil(async () => {
      lock = await belfry.lock('a')
      return lock
    })
    expect(tookMs).toBeLessThan(SOON_MS)
    expect(lock?.token).toBeGreaterThan(held?.token ?? Number.POSITIVE_INFINITY)
  })

  it('the exclusive run of a killed process is taken over at once, although its lease is a minute', async () => {
    const child = await holder('advisory', 'run')
    const attempts: number[] = []
    const belfry = instance()
    belfry.job('long', { exclusive: { name: 'shared' }, run: ({ run }) => void attempts.push(run.attempt) })
    await belfry.start()
    child.kill('SIGKILL')
    expect(await msUntil(() => attempts.length > 0)).toBeLessThan(SOON_MS)
    expect(attempts).toEqual([2])
  })

  it('a run that waits for the key of a killed process starts at once', async () => {
    const child = await holder('advisory', 'run')
    const started: string[] = []
    const belfry = instance()
    belfry.job('long', { exclusive: { name: 'shared' }, run: () => void started.push('long') })
    const next = belfry.job('next', {
      exclusive: { name: 'shared', whenBusy: 'wait', checkOnEnqueue: false },
      run: () => void started.push('next'),
    })
    await belfry.start()
    await next.enqueue()
    await sleep(300)
    expect(started).toEqual([])
    child.kill('SIGKILL')
    expect(await msUntil(() => started.includes('next'))).toBeLessThan(SOON_MS)
  })

  it('a waiter gets the lock of a killed process at once', async () => {
    const child = await holder('advisory', 'lock')
    const belfry = instance()
    await belfry.start()
    const waiting = belfry.lock('a', { wait: '30s' })
    await sleep(300)
    const killedAt = performance.now()
    child.kill('SIGKILL')
    expect(await waiting).toBeDefined()
    expect(performance.now() - killedAt).toBeLessThan(SOON_MS)
  })

  it('the lock of a killed process is not listed', async () => {
    const child = await holder('advisory', 'lock')
    const belfry = instance()
    await belfry.start()
    expect((await belfry.locks.list()).items).toHaveLength(1)
    child.kill('SIGKILL')
    expect(await msUntil(async () => (await belfry.locks.list()).items.length === 0)).toBeLessThan(SOON_MS)
  })

  it('the lock of a live process is taken by no other process, in either mode', async () => {
    const [one, other] = [instance(), instance({ liveness: 'lease' })]
    await one.start()
    await other.start()
    const lock = await one.lock('a', { ttl: '60s' })
    expect(lock).toBeDefined()
    for (const belfry of [one, other]) expect(await belfry.lock('a')).toBeUndefined()
  })
})

it('a lock granted to a remote holder outlives the process that granted or renewed it', async () => {
  const [granting, renewing, looking] = [instance(), instance(), instance()]
  const plain = await granting.locks.grant('plain', { ttl: '60s' })
  const waited = await granting.locks.grant('waited', { ttl: '60s', wait: '1s' })
  if (plain === undefined || waited === undefined) throw new Error('they were free')
  await cutDirectConnections()
  expect(await looking.locks.grant('plain')).toBeUndefined()
  expect(await looking.locks.grant('waited')).toBeUndefined()
  expect(await renewing.locks.renewGrant('plain', plain, '60s')).toMatchObject({ token: plain.token })
  await cutDirectConnections()
  expect(await looking.locks.grant('plain')).toBeUndefined()
  expect(await looking.locks.releaseGrant('plain', plain)).toBe(true)
  expect(await looking.locks.grant('plain')).toBeDefined()
})

it('in the lease mode the lock and the run of a killed process are free when its lease expires', async () => {
  const holders = [await holder('lease', 'lock'), await holder('lease', 'run')]
  const attempts: number[] = []
  const belfry = instance()
  belfry.job('long', { exclusive: { name: 'shared' }, run: ({ run }) => void attempts.push(run.attempt) })
  await belfry.start()
  for (const child of holders) child.kill('SIGKILL')
  await sleep(2_500)
  expect(await belfry.lock('a')).toBeUndefined()
  expect(attempts).toEqual([])
})

describe('an instance whose direct connection is cut', () => {
  it('gives up its locks and runs, joins under a new id, and goes on', async () => {
    const lines: LogLine[] = []
    const [one, other] = [instance({}, lines), instance()]
    const reasons: string[] = []
    const starts: number[] = []
    const job = one.job('work', {
      exclusive: true,
      run: async ({ signal, run }) => {
        starts.push(run.attempt)
        if (run.attempt > 1) return
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        reasons.push((signal.reason as { code: string }).code)
      },
    })
    await one.start()
    await job.enqueue()
    const lock = await one.lock('a', { ttl: '60s' })
    await msUntil(() => starts.length > 0)
    const before = one.instance
    await cutDirectConnections()
    expect(await msUntil(() => lock?.signal.aborted)).toBeLessThan(SOON_MS)
    expect(lock?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    await other.start()
    expect(await msUntil(() => other.lock('a'))).toBeLessThan(SOON_MS)
    await msUntil(() => starts.length > 1)
    expect({ starts, reasons }).toEqual({ starts: [1, 2], reasons: ['LEASE_LOST'] })
    expect(one.instance).not.toBe(before)
    expect(await lock?.extend('60s')).toBe(false)
    expect(lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      'a lock was lost',
      'lost the lease: the connection that proved that this process lives broke; aborting what runs here and joining anew',
    ])
  })

  it('may extend a lock that no other process took', async () => {
    const belfry = instance()
    await belfry.start()
    const lock = await belfry.lock('a', { ttl: '60s' })
    await cutDirectConnections()
    await msUntil(() => lock?.signal.aborted)
    expect(await lock?.extend('60s')).toBe(true)
    expect(lock?.signal.aborted).toBe(false)
    const other = instance()
    await other.start()
    expect(await other.lock('a')).toBeUndefined()
  })

  it('keeps its place in the waiter queue of a lock', async () => {
    const [one, other] = [instance(), instance({ liveness: 'lease' })]
    await one.start()
    await other.start()
    const held = await other.lock('a', { ttl: '60s' })
    const waiting = one.lock('a', { wait: '30s' })
    await sleep(300)
    await cutDirectConnections()
    await sleep(300)
    await held?.release()
    const lock = await waiting
    expect(lock?.signal.aborted).toBe(false)
    expect(await other.lock('a')).toBeUndefined()
  })

  it('finds out although its connection stays open', async () => {
    const proxy = await lossyProxy(new URL(url))
    cleanups.push(() => proxy.close())
    const pool = new pg.Pool({ connectionString: url })
    cleanups.push(() => pool.end())
    const belfry = instance({ pool, direct: proxy.url })
    await belfry.start()
    const lock = await belfry.lock('a', { ttl: '60s' })
    proxy.forget()
    expect(await msUntil(() => lock?.signal.aborted)).toBeLessThan(SOON_MS)
    expect(await msUntil(() => belfry.lock('a').catch(() => undefined))).toBeLessThan(SOON_MS)
  })
})

it('its pool may go through PgBouncer, next to the direct connection', async () => {
  const pool = new pg.Pool({ connectionString: await serverUrl('pgbouncer') })
  cleanups.push(() => pool.end())
  const [one, other] = [instance({ pool, direct: url }), instance({ pool, direct: url })]
  await one.start()
  await other.start()
  const lock = await one.lock('a', { ttl: '60s' })
  expect(await other.lock('a')).toBeUndefined()
  await cutDirectConnections()
  expect(await msUntil(() => lock?.signal.aborted)).toBeLessThan(SOON_MS)
  expect(await msUntil(() => other.lock('a'))).toBeLessThan(SOON_MS)
})

it('a minimum hold outlives the process that asked for it', async () => {
  const [one, other] = [instance(), instance()]
  const lock = await one.lock('a', { ttl: '60s', minHold: '60s' })
  await lock?.release()
  await one.stop()
  await other.start()
  expect(await other.lock('a')).toBeUndefined()
})

it('an instance that stops in order leaves nothing to take over, and logs no loss', async () => {
  const lines: LogLine[] = []
  const belfry = instance({}, lines)
  await belfry.start()
  await belfry.lock('a')
  await belfry.stop()
  expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  const { rows } = await admin.query(`select from ${SCHEMA}.instances union all select from ${SCHEMA}.leases`)
  expect(rows).toEqual([])
})

describe('the advisory mode is refused', () => {
  it('without a URL for the direct connection', () => {
    expect(() => postgres({ pool: admin, liveness: 'advisory' })).toThrow(/pass `direct` with a URL/)
  })

  it('when its name is misspelt', () => {
    expect(() => postgres({ pool: admin, liveness: 'advice' as never })).toThrow(/allowed are lease and advisory/)
  })

  it('when the direct connection leads to another database', async () => {
    await admin.query(`create database ${SCHEMA}`)
    cleanups.push(() => admin.query(`drop database ${SCHEMA} with (force)`))
    const elsewhere = Object.assign(new URL(url), { pathname: `/${SCHEMA}` }).toString()
    await migratePostgres({ url: elsewhere, schema: SCHEMA })
    const store = postgres({ pool: admin, direct: elsewhere, schema: SCHEMA, liveness: 'advisory' })
    await expect(store.open()).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /another server or database/ })
    await store.close()
  })

  it('when the direct connection leads through a pooler', async () => {
    const direct = await serverUrl('pgbouncer')
    const store = postgres({ pool: admin, direct, schema: SCHEMA, liveness: 'advisory' })
    await expect(store.open()).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /a pooler in between/ })
    await store.close()
  })

  it('when the direct connection leads to a database without the schema', async () => {
    const name = `bare_${process.pid}_${Date.now().toString(36)}`
    await admin.query(`create database ${name}`)
    const direct = Object.assign(new URL(await serverUrl('postgres')), { pathname: `/${name}` }).href
    const store = postgres({ pool: admin, direct, schema: SCHEMA, liveness: 'advisory' })
    await expect(store.open()).rejects.toThrow(/`direct` reaches another server or database than the pool/)
    await store.close()
    await admin.query(`drop database ${name} with (force)`)
  })

  it('when the direct connection cannot be opened', async () => {
    const direct = 'postgres://nobody@127.0.0.1:1/none'
    const store = postgres({ pool: admin, direct, schema: SCHEMA, liveness: 'advisory' })
    await expect(store.open()).rejects.toMatchObject({
      ...{ code: 'STORE_UNREACHABLE', cause: { code: 'ECONNREFUSED' } },
      message: /^the direct connection \(`direct`\): /,
    })
    await store.close()
  })
})
