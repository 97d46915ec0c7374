/** Operations that change rows between the statements of another operation. The database's clock runs in real time. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { plan } from '../../src/core/schedules/plan.js'
import type { Store } from '../../src/core/store.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { definition } from '../../src/testing/contract/scene.js'
import { serverUrl } from '../servers/server-url.js'

const schema = `contention_${process.pid}_${Date.now().toString(36)}`
let pool: pg.Pool
let store: Store

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await serverUrl('postgres'), max: 8 })
  await migratePostgres({ pool, schema })
  store = postgres({ pool, schema, listen: false })
})

afterAll(async () => {
  await pool.query(`drop schema if exists ${schema} cascade`)
  await pool.end()
})

describe('schedules that tick all the time', () => {
  it('can be changed in one batch while other processes record their ticks and start their runs', async () => {
    const ids = Array.from({ length: 100 }, (_, at) => `busy/${at}`)
    const write = (payload: number) =>
      ids.map((id) => ({ id, definition: definition({ timeline: { every: 50 }, payload, keep: 'none' }) }))
    await store.schedules.put(write(0))
    await store.instances.join({ id: 'one', host: 'host', pid: 1, zoneData: '', jobs: [{ name: 'work' }] }, 60_000)
    let changing = true
    let claim = 0

    async function recordTicks(): Promise<void> {
      while (changing) await store.schedules.advance({ limit: 50, lookaheadMs: 0, plan })
    }

    async function startRuns(): Promise<void> {
      while (changing) {
        claim += 1
        const jobs = [{ name: 'work', limit: 100 }]
        const { runs } = await store.runs.claim({ instance: 'one', claim, limit: 100, jobs, sinks: [], floor: 0 })
        await store.runs.settle(runs.map(({ id, token }) => ({ run: id, token, outcome: { kind: 'succeeded' } })))
      }
    }

    const others = [recordTicks(), recordTicks(), startRuns()]
    try {
      for (const payload of [1, 2, 3]) {
        const results = await store.schedules.put(write(payload))
        expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['updated']))
      }
    } finally {
      changing = false
      await Promise.all(others)
    }
    expect((await store.schedules.get('busy/7'))?.definition.payload).toBe(3)
  })
})

describe('a lock whose lease has expired', () => {
  it('is either renewed or taken by another holder, never both', async () => {
    for (let round = 0; round < 150; round += 1) {
      const name = `lock/${round}`
      const request = { name, permits: 1, floor: 0, ttlMs: 60_000 }
      const first = await store.leases.acquire({ ...request, holder: 'first', ttlMs: 1 })
      if (!first.acquired) throw new Error(`${name} was not free`)
      const { token } = first.lease
      const [[renewed], ...rivals] = await Promise.all([
        store.leases.renew([{ ...request, holder: 'first', token }]),
        ...['second', 'third', 'fourth'].map((holder) => store.leases.acquire({ ...request, holder })),
      ])
      const winners = [renewed !== undefined, ...rivals.map(({ acquired }) => acquired)].filter(Boolean)
      expect(winners.length, `winners of ${name}`).toBe(1)
    }
  })
})
