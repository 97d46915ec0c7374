/** Concurrent calls of one process share transactions for their writes, and waiters share their reads. */
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { definition, newRun } from '../../src/testing/contract/scene.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

const COMMITS = `select count(distinct xmin::text) as transactions, count(*) as rows`

/** A fresh store, and a client that reads its tables. */
async function scene() {
  const fresh = await freshPostgres()
  await fresh.store.open()
  const observer = new pg.Client({ connectionString: fresh.direct })
  await observer.connect()
  const look = async (sql: string) => (await observer.query(sql.replaceAll('belfry.', `${fresh.schema}.`))).rows
  const close = async () => {
    await observer.end()
    await fresh.store.close()
    await fresh.close()
  }
  return { ...fresh, look, close }
}

describe('concurrent calls on Postgres', () => {
  it('put schedules in few transactions', async () => {
    const { store, look, close } = await scene()
    const ids = Array.from({ length: 50 }, (_, at) => `s/${at}`)
    const results = await Promise.all(ids.map((id) => store.schedules.put([{ id, definition: definition() }])))
    expect(results.flat().map(({ outcome, schedule }) => [outcome, schedule?.id])).toEqual(
      ids.map((id) => ['created', id]),
    )
    const [found] = await look(`${COMMITS} from belfry.schedules`)
    expect(Number(found.rows)).toBe(50)
    expect(Number(found.transactions)).toBeLessThan(10)
    await close()
  })

  it('are decided by the database’s time', async () => {
    const { store, elapse, close } = await scene()
    const start = await store.now()
    await elapse(-3_600_000)
    const soon = definition({ timeline: { at: [start - 1_800_000] } })
    const [result] = await store.schedules.put([{ id: 'a', definition: soon }])
    expect(result).toMatchObject({ outcome: 'created', schedule: { createdAt: start - 3_600_000 } })
    await elapse(7_200_000)
    const [late] = await store.schedules.put([{ id: 'b', definition: definition() }])
    expect(late).toMatchObject({ outcome: 'created', schedule: { createdAt: start + 3_600_000 } })
    await close()
  })

  it('give each put of one schedule its own version', async () => {
    const { store, close } = await scene()
    const intervals = [1, 2, 3, 4].map((minutes) => definition({ timeline: { every: minutes * 60_000 } }))
    const puts = intervals.map((each) => store.schedules.put([{ id: 'one', definition: each }]))
    const versions = (await Promise.all(puts)).flat().map(({ schedule }) => schedule?.version)
    expect(new Set(versions).size).toBe(4)
    expect((await store.schedules.get('one'))?.definition.timeline).toEqual({ every: 240_000 })
    await close()
  })

  it('are refused one by one when a schedule can never fire', async () => {
    const { store, close } = await scene()
    const never = definition({ timeline: { at: [1_000] } })
    const [one, other, third] = await Promise.allSettled([
      store.schedules.put([{ id: 'a', definition: definition() }]),
      store.schedules.put([{ id: 'b', definition: never }]),
      store.schedules.put([{ id: 'c', definition: definition() }]),
    ])
    expect([one?.status, other?.status, third?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.schedules.list({ limit: 10 })).items.map(({ id }) => id)).toEqual(['a', 'c'])
    await close()
  })

  it('enqueue in few transactions, and each caller gets its own run', async () => {
    const { store, look, close } = await scene()
    const payloads = Array.from({ length: 50 }, (_, at) => ({ quoted: `"${at}\\`, at }))
    const results = await Promise.all(payloads.map((payload) => store.runs.enqueue([newRun({ payload })])))
    const runs = await Promise.all(results.flat().map(({ run }) => store.runs.get(run)))
    expect(runs.map((run) => run?.payload)).toEqual(payloads)
    const [found] = await look(`${COMMITS} from belfry.runs`)
    expect(Number(found.transactions)).toBeLessThan(10)
    await close()
  })
})

describe('a waiter for a lock on Postgres', () => {
  const WAIT = { name: 'lock', ttlMs: 30_000, permits: 1, floor: 0, waitMs: 2_000 }

  it('gets the lock that was handed to it, with the same token', async () => {
    const { store, look, close } = await scene()
    const { leases } = store
    await leases.acquire({ ...WAIT, holder: 'first' })
    expect(await leases.acquire({ ...WAIT, holder: 'second' })).toMatchObject({ acquired: false })
    expect(await leases.acquire({ ...WAIT, holder: 'third' })).toMatchObject({ acquired: false })
    const places = () => look('select holder, xmin::text, until from belfry.waiters order by holder')
    const before = await places()
    const again = await Promise.all(['second', 'third'].map((holder) => leases.acquire({ ...WAIT, holder })))
    expect(again.map(({ acquired }) => acquired)).toEqual([false, false])
    expect(await places()).toEqual(before)
    await leases.release({ name: 'lock', holder: 'first' })
    const [lease] = await look('select holder, token from belfry.leases')
    const [second, third] = await Promise.all(['second', 'third'].map((holder) => leases.acquire({ ...WAIT, holder })))
    expect(second).toMatchObject({ acquired: true, lease: { holder: 'second', token: Number(lease.token) } })
    expect(third).toMatchObject({ acquired: false })
    expect(await look('select holder, token from belfry.leases')).toEqual([lease])
    await close()
  })

  it('has the lock for its full TTL, however late it asks', async () => {
    const { store, elapse, close } = await scene()
    const { leases } = store
    await leases.acquire({ ...WAIT, holder: 'first' })
    await leases.acquire({ ...WAIT, holder: 'second' })
    await leases.release({ name: 'lock', holder: 'first' })
    await elapse(10_000)
    const result = await leases.acquire({ ...WAIT, holder: 'second' })
    expect(result.acquired && result.lease.expiresAt - (await store.now())).toBe(30_000)
    await close()
  })

  it('keeps its place by asking again, and takes over an expired lease', async () => {
    const { store, elapse, look, close } = await scene()
    const { leases } = store
    await leases.acquire({ ...WAIT, holder: 'first', ttlMs: 3_000 })
    const ask = () => leases.acquire({ ...WAIT, holder: 'second' })
    expect(await ask()).toMatchObject({ acquired: false })
    await elapse(1_500)
    expect(await ask()).toMatchObject({ acquired: false })
    const [place] = await look(`select until - belfry.now_us() / 1000 as left from belfry.waiters`)
    expect(Number(place.left)).toBe(2_000)
    await elapse(1_500)
    expect(await ask()).toMatchObject({ acquired: true })
    await close()
  })
})

describe('concurrent requests for locks on Postgres', () => {
  const LOCK = { ttlMs: 30_000, permits: 1, floor: 0 }

  it('acquire and release in few transactions', async () => {
    const { store, look, close } = await scene()
    const names = Array.from({ length: 50 }, (_, at) => `lock/${at}`)
    const ask = (holder: string) => Promise.all(names.map((name) => store.leases.acquire({ ...LOCK, name, holder })))
    const first = await ask('first')
    expect(first.every(({ acquired }) => acquired)).toBe(true)
    const [found] = await look(`${COMMITS} from belfry.leases`)
    expect(Number(found.rows)).toBe(50)
    expect(Number(found.transactions)).toBeLessThan(10)
    expect((await ask('second')).map(({ acquired }) => acquired)).toEqual(names.map(() => false))
    const given = await Promise.all(names.map((name) => store.leases.release({ name, holder: 'first' })))
    expect(given).toEqual(names.map(() => true))
    const again = await ask('second')
    const token = (result: (typeof again)[number] | undefined) => (result?.acquired ? result.lease.token : 0)
    for (const at of names.keys()) expect(token(again[at])).toBeGreaterThan(token(first[at]))
    await close()
  })

  it('give each lock to one holder, also when several ask for the same', async () => {
    const { store, close } = await scene()
    const asked = Array.from({ length: 60 }, (_, at) => ({ ...LOCK, name: `lock/${at % 20}`, holder: `h${at}` }))
    const results = await Promise.all(asked.map((request) => store.leases.acquire(request)))
    const held = results.flatMap((result) => (result.acquired ? [result.lease.name] : []))
    expect(held).toHaveLength(20)
    expect(new Set(held).size).toBe(20)
    await close()
  })

  it('hand locks to their waiters, although they are released together', async () => {
    const { store, close } = await scene()
    const names = ['a', 'b', 'c']
    await Promise.all(names.map((name) => store.leases.acquire({ ...LOCK, name, holder: 'first' })))
    const other = { ...LOCK, name: 'b', holder: 'second', waitMs: 2_000 }
    expect(await store.leases.acquire(other)).toMatchObject({ acquired: false })
    const given = await Promise.all(names.map((name) => store.leases.release({ name, holder: 'first' })))
    expect(given).toEqual([true, true, true])
    expect(await store.leases.inspect('b')).toMatchObject([{ holder: 'second' }])
    expect(await store.leases.acquire(other)).toMatchObject({ acquired: true })
    await close()
  })
})

describe('a lock that another session is acquiring on Postgres', () => {
  for (const crowd of [[], ['x', 'y']]) {
    const alone = crowd.length === 0 ? 'alone' : 'with others'
    it(`is not given to a request that began before that was committed, ${alone}`, async () => {
      const { store, schema, direct, look, close } = await scene()
      const lock = { ttlMs: 30_000, permits: 1, floor: 0 }
      await store.leases.acquire({ ...lock, name: 'lock', holder: 'before' })
      await store.leases.release({ name: 'lock', holder: 'before' })
      const rival = new pg.Client({ connectionString: direct })
      await rival.connect()
      await rival.query('begin')
      await rival.query(
        `select * from ${schema}.acquire_locks(array[('lock', 'rival', 30000, 1, null, 0, 0, false)]::${schema}.acquisition[], null)`,
      )
      const names = ['lock', ...crowd]
      const asked = Promise.all(names.map((name) => store.leases.acquire({ ...lock, name, holder: 'late' })))
      const waiting = `select count(*) as count from pg_stat_activity where wait_event_type = 'Lock'
        and query like '%${schema}%'`
      await expect.poll(async () => Number((await look(waiting))[0].count), { timeout: 10_000 }).toBeGreaterThan(0)
      await rival.query('commit')
      const [late] = await asked
      expect(late).toMatchObject({ acquired: false })
      expect(await store.leases.inspect('lock')).toMatchObject([{ holder: 'rival' }])
      await rival.end()
      await close()
    })
  }
})
