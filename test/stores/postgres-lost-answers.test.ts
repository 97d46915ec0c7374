/** Operations that the server executed, but whose answer was lost. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import type { NewRun } from '../../src/core/runs/run.js'
import type { Store } from '../../src/core/store.js'
import { Database } from '../../src/stores/postgres/connection/database.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { definition, newRun } from '../../src/testing/contract/scene.js'
import { serverUrl } from '../servers/server-url.js'
import { type LossyProxy, lossyProxy } from './lossy-proxy.js'

const SCHEMA = `lost_${process.pid}`

let url = ''
let proxy: LossyProxy
let pool: pg.Pool
let store: Store

beforeAll(async () => {
  url = await serverUrl('postgres')
  await migratePostgres({ url, schema: SCHEMA })
})

beforeEach(async () => {
  proxy = await lossyProxy(new URL(url))
  pool = new pg.Pool({ connectionString: proxy.url, max: 1 })
  store = postgres({ pool, schema: SCHEMA, listen: false })
  await store.open()
})

afterEach(async () => {
  await store.close()
  await pool.end()
  proxy.close()
})

afterAll(async () => {
  const admin = new pg.Pool({ connectionString: url })
  await admin.query(`drop schema ${SCHEMA} cascade`)
  await admin.end()
})

const unreachable = { code: 'STORE_UNREACHABLE' }

const runOf = (job: string, more: Partial<NewRun> = {}) => newRun({ target: { job }, ...more })

async function runsOf(job: string): Promise<number> {
  return (await store.runs.list({ job, limit: 10 })).items.length
}

describe('an operation of the postgres store whose answer was lost', () => {
  it('is not repeated when a repetition would create another run, and fails with an unknown outcome', async () => {
    proxy.loseAnswer()
    await expect(store.runs.enqueue([runOf('plain')])).rejects.toMatchObject(unreachable)
    expect(await runsOf('plain')).toBe(1)
  })

  it('is repeated when a dedupe key makes the run unique', async () => {
    proxy.loseAnswer()
    const [result] = await store.runs.enqueue([runOf('keyed', { dedupe: 'a' })])
    expect(result?.run).toBeDefined()
    expect(await runsOf('keyed')).toBe(1)
  })

  it('is not repeated when one of many runs is not unique', async () => {
    proxy.loseAnswer()
    await expect(store.runs.enqueue([runOf('many', { dedupe: 'b' }), runOf('many')])).rejects.toMatchObject(unreachable)
    expect(await runsOf('many')).toBe(2)
  })

  it('returns the same lease, claim and settlement when it is repeated', async () => {
    const request = { name: 'a', holder: 'me', ttlMs: 60_000, permits: 1, floor: 0 }
    proxy.loseAnswer()
    const first = await store.leases.acquire(request)
    const second = await store.leases.acquire(request)
    expect(first.acquired && second.acquired && first.lease.token === second.lease.token).toBe(true)

    await store.runs.enqueue([runOf('claimed')])
    await store.instances.join({ id: 'one', host: 'h', pid: 1, zoneData: 'x', jobs: [] }, 60_000)
    proxy.loseAnswer()
    const claim = { instance: 'one', claim: 1, limit: 10, jobs: [{ name: 'claimed', limit: 10 }], sinks: [], floor: 0 }
    const [run] = (await store.runs.claim(claim)).runs
    expect(run).toMatchObject({ state: 'running', attempt: 1 })

    proxy.loseAnswer()
    const settlement = { run: run?.id ?? '', token: run?.token ?? 0, outcome: { kind: 'succeeded' } } as const
    expect(await store.runs.settle([settlement])).toEqual(['settled'])
  })

  it('is not repeated when a repetition would conflict with its own write', async () => {
    const write = (id: string) => ({ id, definition: definition() })
    // A put reads, and then writes: this loses the answer to the write.
    proxy.loseAnswer(2)
    const conditional = store.schedules.put([{ ...write('conditional'), ifVersion: 0 }])
    await expect(conditional).rejects.toMatchObject(unreachable)
    expect(await store.schedules.get('conditional')).toBeDefined()
    proxy.loseAnswer(2)
    expect(await store.schedules.put([write('plain')])).toMatchObject([{ outcome: 'unchanged' }])
  })

  it('fails when a repeated release cannot tell whether the lock was still held', async () => {
    const request = { permits: 1, floor: 0, ttlMs: 60_000 }
    const [held, queued] = [
      { ...request, name: 'released', holder: 'me' },
      { ...request, name: 'handed on', holder: 'me' },
    ]
    await store.leases.acquire(held)
    await store.leases.acquire(queued)
    await store.leases.acquire({ ...queued, holder: 'next', waitMs: 60_000 })
    for (const { name, holder } of [held, queued]) {
      proxy.loseAnswer()
      await expect(store.leases.release({ name, holder })).rejects.toMatchObject(unreachable)
      expect(await store.leases.release({ name, holder })).toBe(false)
    }
    expect(await store.leases.inspect('released')).toEqual([])
    expect(await store.leases.inspect('handed on')).toMatchObject([{ holder: 'next' }])
  })

  it('never resets a lock twice', async () => {
    proxy.loseAnswer()
    await expect(store.leases.reset('a')).rejects.toMatchObject(unreachable)
  })
})

describe('a transaction of the postgres store', () => {
  const database = (from: pg.Pool) =>
    new Database({ pool: from, schema: SCHEMA, clock: systemClock, announce: () => {} })

  it('is repeated when its connection is cut between two statements', async () => {
    const admin = new pg.Pool({ connectionString: url })
    let tries = 0
    const answer = await database(pool).transaction('select pg_backend_pid()', async ([row], tx) => {
      tries += 1
      if (tries === 1) {
        const sessions = 'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1'
        await expect.poll(async () => (await admin.query(sessions, [row?.[0]])).rowCount).toBe(0)
        await expect.poll(() => pool.totalCount === 1 && tx.run('select 1').catch(() => 'cut')).toBe('cut')
      }
      return (await tx.run('select 42'))[0]?.[0]
    })
    expect({ tries, answer }).toEqual({ tries: 2, answer: '42' })
    await admin.end()
  })

  it('is not repeated for an error that is not the database’s, which is thrown unchanged', async () => {
    let tries = 0
    const mistake = new Error('out of paper')
    const failing = database(pool).transaction('select 1', async () => {
      tries += 1
      throw mistake
    })
    await expect(failing).rejects.toBe(mistake)
    expect(tries).toBe(1)
  })
})
