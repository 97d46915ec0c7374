/** Races, forced by locks that stop one side in the middle of its operation. */
import pg from 'pg'
import { expect, it } from 'vitest'
import { plan } from '../../src/core/schedules/plan.js'
import type { ClaimedRun } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { key, retryIn, Scene } from '../../src/testing/contract/scene.js'
import { manualClockSql } from '../servers/database-clock.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

async function whileLocked<Result>(direct: string, table: string, work: () => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  try {
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    return await work()
  } finally {
    await client.query('commit')
    await client.end()
  }
}

async function untilTableIsWaitedFor(direct: string, table: string): Promise<void> {
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  const waiting = `select 1 from pg_locks where relation = '${table}'::regclass and not granted`
  await expect.poll(async () => (await client.query(waiting)).rowCount).toBeGreaterThan(0)
  await client.end()
}

/**
 * Waits until so many executions of a statement wait for a lock. Uses a session of its own, because a transaction sees
 * the same statistics until it ends.
 */
async function untilStatementWaits(direct: string, statement: string, times = 1): Promise<void> {
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like $1`
  const count = async () => (await client.query(waiting, [statement])).rowCount
  await expect.poll(count, { timeout: 10_000 }).toBe(times)
  await client.end()
}

it('a key is not taken from an instance whose beat is in flight', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claimOne, beat, tryAcquire, claim, elapse, settle, store } = new Scene(opened)
  await join('slow', 300)
  await join('quick')
  const id = await enqueue({ key: { name: 'k', limit: 1, whenBusy: 'wait' } })
  const run = await claimOne('slow')
  const younger = await enqueue({ key: { name: 'k', limit: 1, whenBusy: 'wait' } })
  await elapse(400)
  const table = `${schema}.declarations`
  let beating: Promise<unknown> | undefined
  await whileLocked(direct, table, async () => {
    // The beat has extended the lease, and has not committed yet.
    beating = beat('slow', [run])
    await untilTableIsWaitedFor(direct, table)
    expect(await tryAcquire('k', 'thief')).toMatchObject({ acquired: false })
    expect(await claim('quick')).toEqual([])
  })
  expect(await beating).toMatchObject({ alive: true, lost: [] })
  expect(await store.leases.inspect('k')).toMatchObject([{ run: id }])
  expect(await settle(run)).toBe('settled')
  expect(await claimOne('quick')).toMatchObject({ id: younger })
  await store.close()
  await opened.close()
})

it('a beat that follows a takeover of its run’s key reports the run as lost', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claimOne, beat, elapse, settle, store } = new Scene(opened)
  await join('slow', 300)
  const id = await enqueue({ key: key('k') })
  const run = await claimOne('slow')
  await elapse(400)
  const thief = new pg.Client({ connectionString: direct })
  await thief.connect()
  await thief.query(`begin; select from ${schema}.instances for update`)
  const beating = beat('slow', [run])
  await untilStatementWaits(direct, `%${schema}%beat%`)
  await thief.query(
    `select from ${schema}.acquire_locks(array[('k', 'thief', 60000, 1, null, 0, 0, false)]::${schema}.acquisition[], null)`,
  )
  await thief.query('commit')
  await thief.end()
  expect(await beating).toMatchObject({ alive: true, lost: [id] })
  expect(await store.leases.inspect('k')).toMatchObject([{ holder: 'thief' }])
  expect(await settle(run)).toBe('stale')
  await store.close()
  await opened.close()
})

it('a free key with waiters is found among many keys that are held', async () => {
  const opened = await freshPostgres()
  const { acquire, enqueue, claim, elapse, join, store } = new Scene(opened)
  await join()
  const names = Array.from({ length: 20 }, (_, at) => `k${at}`)
  const held = names.filter((name) => name !== 'k7')
  for (const name of held) await acquire(name, 'somebody')
  await acquire('k7', 'somebody who dies', { ttlMs: 300 })
  for (const name of names) await enqueue({ key: { name, limit: 1, whenBusy: 'wait' } })
  expect(await claim('one', { limit: 20 })).toEqual([])
  await elapse(310)
  await expect
    .poll(
      async () => {
        await store.runs.rescue(2)
        return (await claim('one')).map(({ key }) => key?.name)
      },
      { timeout: 10_000, interval: 1 },
    )
    .toEqual(['k7'])
  await store.close()
  await opened.close()
})

it('the runs of a claim that is carried out after its instance gave it up are given back by the next beat', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claim, beat, stateOf, store } = new Scene(opened)
  await join('one')
  const id = await enqueue()
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  await client.query(`begin; select from ${schema}.instances for no key update`)
  // The beat has read the runs of the instance, and now waits for the instance's row.
  const beating = store.instances.beat({ instance: 'one', leaseMs: 60_000, attempts: [], claimsSettled: 1 })
  await untilStatementWaits(direct, `%${schema}%beat%`)
  expect(await claim('one')).toHaveLength(1)
  await client.query('commit')
  await client.end()
  await beating
  expect(await stateOf(id)).toBe('running')
  await beat('one', [])
  expect(await stateOf(id)).toBe('ready')
  await store.close()
  await opened.close()
})

it('the row of a claim is deleted when its last run has ended, and no sooner', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claim, claimOne, beat, settle, stateOf, elapse, store } = new Scene(opened)
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  const claims = async () => {
    const { rows } = await client.query(`select array_agg(id::text order by id) as runs from ${schema}.runs
      where state = 'running' group by instance, claim`)
    return rows.map(({ runs }) => runs)
  }
  await join('one', 300)
  const ids = [await enqueue(), await enqueue(), await enqueue()]
  const [first, second, running] = (await claim('one')) as [ClaimedRun, ClaimedRun, ClaimedRun]
  await beat('one', [first, second, running], 300)
  const numberOf = (id: string) => id.split('-')[0]
  expect(await claims()).toEqual([ids.map(numberOf)])
  await settle(first)
  await settle(second)
  await beat('one', [running], 300)
  expect(await claims()).toEqual([[numberOf(running.id)]])
  await elapse(310)
  await store.runs.rescue(10)
  expect(await stateOf(running.id)).toBe('ready')
  expect(await claims()).toEqual([])
  await join('two')
  await settle(await claimOne('two'))
  await beat('two', [])
  expect(await claims()).toEqual([])
  await client.end()
  await store.close()
  await opened.close()
})

it('a run that another instance has restarted is not taken over together with the others of its former instance', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claim, claimOne, settle, elapse, store } = new Scene(opened)
  await join('late', 300)
  await enqueue({ key: key('a') })
  const id = await enqueue()
  const mine = (await claim('late')).find((run) => run.id === id) as ClaimedRun
  await elapse(310)
  await join('other')
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  await client.query(`begin; select from ${schema}.lock_names for update`)
  // The rescue has read the runs of the late instance, and now waits for the key.
  const rescuing = store.runs.rescue(100)
  await untilStatementWaits(direct, `%${schema}%rescue%`)
  expect(await settle(mine, retryIn(0))).toBe('settled')
  const again = await claimOne('other')
  expect(again.id).toBe(id)
  await client.query('commit')
  await client.end()
  expect(await rescuing).toMatchObject({ rescued: 1 })
  expect(await settle(again)).toBe('settled')
  await store.close()
  await opened.close()
})

it('running runs are out of the way of claims, and they end and are taken over as usual', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, enqueue, claim, beat, settle, elapse, stateOf, store } = new Scene(opened)
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  const passed = async () => (await client.query(`select from ${schema}.runs where state = 'ready'`)).rowCount
  await join('one', 60_000)
  const ids = [await enqueue(), await enqueue(), await enqueue()]
  const [ends, isTaken, isShort] = (await claim('one')) as [ClaimedRun, ClaimedRun, ClaimedRun]
  expect(await passed()).toBe(0)
  expect(await beat('one', [ends, isTaken, isShort], 300)).toMatchObject({ alive: true, lost: [] })
  expect(await passed()).toBe(0)
  expect((await store.runs.list({ limit: 10, states: ['running'] })).items).toHaveLength(3)
  expect((await store.runs.list({ limit: 10, states: ['ready'] })).items).toHaveLength(0)
  expect(await settle(ends)).toBe('settled')
  await elapse(310)
  expect(await store.runs.rescue(10)).toMatchObject({ rescued: 2 })
  expect(await Promise.all(ids.map((id) => stateOf(id)))).toEqual(['succeeded', 'ready', 'ready'])
  await client.end()
  await store.close()
  await opened.close()
})

/**
 * SQL for a clock that stops sessions named `slow` while another session holds an advisory lock. A statement reads the
 * time after it took its snapshot, so the test can change rows in between.
 */
function slowClock(schema: string): string {
  return `create or replace function ${schema}.now_us() returns bigint language plpgsql volatile as $$
    begin
      if current_setting('application_name') = 'slow' then perform pg_advisory_xact_lock_shared(20); end if;
      return (select last_value from ${schema}.manual_clock);
    end $$`
}

it('a plan is not written over runs that an advance recorded after this one took its snapshot', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { join, putTicks, advance, claimOne, elapse, statesOf, skipsOf, store } = new Scene(opened)
  const slowPool = new pg.Pool({ connectionString: direct, application_name: 'slow' })
  const slow = postgres({ pool: slowPool, schema, listen: false })
  await slow.open()
  const gate = new pg.Client({ connectionString: direct })
  await gate.connect()
  await gate.query(slowClock(schema))
  await join()
  await putTicks('a', [-10, 500, 90_000_000], { overlap: 'skip' })
  await gate.query('select pg_advisory_lock(20)')
  const advancing = slow.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
  await untilStatementWaits(direct, `%${schema}%take_due_schedules%`)
  await advance()
  await claimOne()
  await elapse(600)
  await gate.query('select pg_advisory_unlock(20)')
  const both = [await advancing, await advance()]
  expect(both.map(({ recorded }) => recorded)).toEqual([0, 0])
  expect(both.reduce((sum, { skipped }) => sum + skipped, 0)).toBe(1)
  expect(await statesOf('a')).toEqual(['running'])
  expect(await skipsOf('a')).toEqual(['1 overlap'])
  await gate.query(manualClockSql(schema))
  await gate.end()
  await slow.close()
  await slowPool.end()
  await store.close()
  await opened.close()
})

it('of two triggers with overlap `skip`, the second sees the first, however long the first takes', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { put, tryEnqueue, store } = new Scene(opened)
  await put('a')
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  // Both triggers can read the runs of the schedule, but neither can insert one.
  await client.query(`begin; lock table ${schema}.runs in share mode`)
  const trigger = () => tryEnqueue({ origin: 'trigger', schedule: 'a', overlap: 'skip' })
  const both = Promise.all([trigger(), trigger()])
  await untilStatementWaits(direct, `%${schema}%enqueue%`, 2)
  await client.query('commit')
  await client.end()
  const outcomes = (await both).map(({ outcome }) => outcome)
  expect(outcomes.sort()).toEqual(['busy', 'enqueued'])
  await store.close()
  await opened.close()
})

it('a tick that an advance skipped because a trigger had locked its schedule is recorded after the trigger', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { putTicks, tryEnqueue, advance, store } = new Scene(opened)
  await putTicks('a', [-10, 90_000_000], { overlap: 'queue-all' })
  const woken: string[] = []
  const unsubscribe = store.subscribe((wake) => woken.push(wake))
  const table = `${schema}.runs`
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  await client.query(`begin; lock table ${table} in share mode`)
  const triggering = tryEnqueue({ origin: 'trigger', schedule: 'a', overlap: 'skip' })
  await untilStatementWaits(direct, `%${schema}%enqueue%`)
  expect(await advance()).toMatchObject({ schedules: 0 })
  woken.length = 0
  await client.query('commit')
  await client.end()
  await triggering
  await expect.poll(() => woken, { timeout: 10_000 }).toContain('schedules')
  expect(await advance()).toMatchObject({ recorded: 1 })
  unsubscribe()
  await store.close()
  await opened.close()
})

it('a put waits for a schedule that another has created meanwhile before it locks any other', async () => {
  const opened = await freshPostgres()
  const { direct, schema } = opened
  const { put, store } = new Scene(opened)
  const { definition } = await put('z')
  const changed = { ...definition, payload: 'changed' }
  const other = new pg.Client({ connectionString: direct })
  await other.connect()
  const lock = (id: string) => `select from ${schema}.schedules where id = '${id}' for update`
  await other.query(`begin; select pg_advisory_xact_lock(7237133, hashtext('"${schema}".schedules'))`)
  const putting = store.schedules.put(['a', 'z'].map((id) => ({ id, definition: changed })))
  await untilStatementWaits(direct, `%${schema}%change_schedules%`)
  await other.query(`
    create temp table a as select * from ${schema}.schedules; update a set id = 'a', definition = 0;
    insert into ${schema}.schedules select * from a;
    insert into ${schema}.definitions select 0, 'a', app, target, options, body, payload, priority, keep, key, key_limit,
      key_when_busy, unstamped from ${schema}.definitions;
    commit; begin; ${lock('a')}`)
  await untilStatementWaits(direct, `%${schema}%change_schedules%`)
  await other.query(`${lock('z')} nowait; commit`)
  await other.end()
  expect(await putting).toMatchObject([{ outcome: 'updated' }, { outcome: 'updated' }])
  await store.close()
  await opened.close()
})
