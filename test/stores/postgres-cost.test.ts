/** The cost of operations on Postgres, mostly in rows read, because a duration depends on the machine's load. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect, it } from 'vitest'
import type { ClaimedRun } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { inStates } from '../../src/stores/postgres/runs/list.js'
import { definition, failed, key, newRun, Scene } from '../../src/testing/contract/scene.js'
import { type FreshPostgres, freshPostgres } from '../servers/fresh-postgres.js'

const SCHEDULES = 10_000
const TICKS = 20
const READ = `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as read, sum(n_tup_upd) as updated
  from pg_stat_user_tables where schemaname = $1 and relname in ('schedules', 'definitions', 'runs')`

/** Runs `work` with a fresh store and a client that reads its tables. */
async function withObserver(work: (opened: FreshPostgres, observer: pg.Client) => Promise<void>): Promise<void> {
  const opened = await freshPostgres()
  const observer = new pg.Client({ connectionString: opened.direct })
  await observer.connect()
  await work(opened, observer)
  await observer.end()
  await opened.store.close()
  await opened.close()
}

/** Postgres 14 publishes counts from a process of its own, some time after the work: waits until they change no more. */
async function settled<Counts>(observer: pg.Client, look: () => Promise<Counts>): Promise<Counts> {
  const { rows } = await observer.query(`select current_setting('server_version_num')::integer >= 150000 as at_once`)
  for (let counts = await look(); ; ) {
    if (rows[0].at_once) return counts
    await sleep(1_200)
    const next = await look()
    if (JSON.stringify(next) === JSON.stringify(counts)) return counts
    counts = next
  }
}

/**
 * Counts the rows that some work reads. The server publishes its counts when the connections of the work end, so this
 * waits until it has published as many updates as the work makes.
 */
function counter({ schema, direct, elapse }: FreshPostgres, observer: pg.Client) {
  return async (updates: number, work: (scene: Scene) => Promise<void>): Promise<number> => {
    const look = async () => (await observer.query(READ, [schema])).rows[0]
    const before = await settled(observer, look)
    const pool = new pg.Pool({ connectionString: direct, max: 2 })
    const own = postgres({ pool, schema, listen: false })
    await work(new Scene({ store: own, elapse }))
    await own.close()
    await pool.end()
    const updated = async () => Number((await look()).updated) - Number(before.updated)
    await expect.poll(updated, { timeout: 20_000, interval: 100 }).toBeGreaterThanOrEqual(updates)
    return Number((await look()).read) - Number(before.read)
  }
}

/** SQL that inserts 5,000 waiting runs. `values` fills the columns `waits_for`, `key`, `schedule` and `tick`. */
function waiting(schema: string, values: string): string {
  return `insert into ${schema}.runs (id, created_at, ready_at, priority, origin, keep, state, engaged, target, payload,
    key_limit, key_when_busy, waits_for, key, schedule, tick) select nextval('${schema}.run_ids'), 0, 0, 0, 'tick', 'all',
    'waiting', true, 'job:work', 'null', 1, 'wait', ${values} from generate_series(1, 5000) n`
}

it('the cost of a tick, or of a page of a list, does not grow with the number of schedules', {
  timeout: 60_000,
}, async () => {
  const opened = await freshPostgres()
  const { store, schema, direct, elapse, close } = opened
  await store.close()
  const observer = new pg.Client({ connectionString: direct })
  await observer.connect()
  const rowsReadBy = counter(opened, observer)
  /** Each tick makes three updates: of the schedule's cursor, of the run that starts, and of the run that ends. */
  const ticks = (instance: string) =>
    rowsReadBy(3 * TICKS, async (scene) => {
      await scene.join(instance)
      for (let tick = 0; tick < TICKS; tick += 1) {
        await elapse(1_000)
        expect(await scene.advance()).toMatchObject({ schedules: 1, recorded: 1 })
        expect(await scene.settle(await scene.claimOne(instance))).toBe('settled')
      }
    })
  await rowsReadBy(0, async (scene) => void (await scene.put('bell', { timeline: { every: 1_000 } })))
  const alone = await ticks('one')
  await rowsReadBy(0, async ({ store: own }) => {
    const others = Array.from({ length: SCHEDULES }, (_, at) => ({ id: `other/${at}`, definition: definition() }))
    for (let at = 0; at < SCHEDULES; at += 1_000) await own.schedules.put(others.slice(at, at + 1_000))
  })
  expect(alone).toBeGreaterThanOrEqual(TICKS)
  const amongAll = await ticks('other')
  expect(amongAll).toBeLessThan(2 * alone + 100)
  await observer.query(`analyze ${schema}.schedules, ${schema}.definitions`)
  const listing = await rowsReadBy(1, async (scene) => {
    expect((await scene.store.schedules.list({ job: 'work', limit: 10 })).items).toHaveLength(10)
    await scene.put('bell', { timeline: { every: 2_000 } })
  })
  expect(listing).toBeLessThan(100)
  await observer.end()
  await close()
})

it('no plan made while the tables are empty scans a whole table, because sessions keep it when they have grown', async () => {
  // Takes a new schema, because autovacuum may have analysed the tables of one that an earlier test has used.
  const used = await freshPostgres()
  const { store, schema, direct, elapse, close } = await freshPostgres()
  await used.close()
  await store.close()
  const pool = new pg.Pool({ connectionString: direct, max: 1, options: '-c plan_cache_mode=force_generic_plan' })
  const own = postgres({ pool, schema, listen: false })
  await own.open()
  const scene = new Scene({ store: own, elapse })
  await scene.join()
  await scene.put('bell', { timeline: { every: 1_000 } })
  await scene.put('bell', { timeline: { every: 2_000 } })
  await elapse(2_000)
  expect(await scene.advance()).toMatchObject({ recorded: 1 })
  expect(await scene.settle(await scene.claimOne())).toBe('settled')
  await own.schedules.get('bell')
  for (const query of [{}, { prefix: 'b' }, { job: 'work' }]) await own.schedules.list({ limit: 10, ...query })
  for (const query of [{}, { schedule: 'bell' }, { job: 'work' }]) await own.runs.list({ limit: 10, ...query })
  await own.runs.get('1-000000000001')
  const { rows: statements } = await pool.query(`select name, statement, cardinality(parameter_types) as parameters
    from pg_prepared_statements where name like 'belfry%'`)
  expect(statements.length).toBeGreaterThan(8)
  const plans: Record<string, string> = {}
  for (const { name, statement, parameters } of statements) {
    const nothing = parameters === 0 ? '' : `(${Array.from({ length: parameters }, () => 'null').join(', ')})`
    const { rows } = await pool.query(`explain (costs off) execute "${name}"${nothing}`)
    plans[statement] = rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  const whole = Object.entries(plans).filter(([, plan]) => /Seq Scan on (schedules|definitions|runs)/.test(plan))
  expect(whole).toEqual([])
  // A scan of the index `runs_tick` without a condition on `tick` reads the ticks of all instants.
  const ticks = Object.entries(plans).filter(([, plan]) => /runs_tick(?![^\n]*\n *Index Cond: [^\n]*tick =)/.test(plan))
  expect(ticks).toEqual([])
  await own.close()
  await pool.end()
  await close()
})

it('missed ticks are found without reading the ticks of other schedules', { timeout: 60_000 }, async () => {
  const { store, schema, direct, elapse, close } = await freshPostgres()
  await store.close()
  const observer = new pg.Client({ connectionString: direct })
  await observer.connect()
  /**
   * Counts the blocks of the index `runs_tick` that some work reads. The server publishes them when its connection
   * ends.
   */
  const blocksReadBy = async (runs: number, work: (scene: Scene) => Promise<void>): Promise<number> => {
    const look = async () =>
      (
        await observer.query(`select t.n_tup_ins as runs, i.idx_blks_hit + i.idx_blks_read as blocks
          from pg_stat_user_tables t join pg_statio_user_indexes i using (relid)
          where t.schemaname = '${schema}' and i.indexrelname = 'runs_tick'`)
      ).rows[0]
    const before = await settled(observer, look)
    const pool = new pg.Pool({ connectionString: direct, max: 1 })
    const own = postgres({ pool, schema, listen: false })
    await work(new Scene({ store: own, elapse }))
    await own.close()
    await pool.end()
    const made = async () => Number((await look()).runs) - Number(before.runs)
    await expect.poll(made, { timeout: 20_000, interval: 100 }).toBe(runs)
    return Number((await look()).blocks) - Number(before.blocks)
  }
  const timely = await blocksReadBy(5_000, async (scene) => {
    const bell = definition({ timeline: { every: 60_000 }, missed: { policy: 'latest', max: 1, graceMs: 10_000 } })
    await scene.store.schedules.put(Array.from({ length: 1_000 }, (_, at) => ({ id: `bell/${at}`, definition: bell })))
    for (let tick = 0; tick < 5; tick += 1) {
      await elapse(60_000)
      expect(await scene.advance({ limit: 1_000 })).toMatchObject({ recorded: 1_000 })
    }
  })
  const afterAnOutage = await blocksReadBy(1_000, async (scene) => {
    // The new ticks are later than their grace, so `latest` takes back the older ticks that have not started.
    await elapse(90_000)
    expect(await scene.advance({ limit: 1_000 })).toMatchObject({ recorded: 1_000 })
    expect((await scene.store.runs.list({ limit: 10, schedule: 'bell/7', states: ['skipped'] })).items).toHaveLength(5)
  })
  expect(afterAnOutage).toBeLessThan(2 * timely)
  await observer.end()
  await close()
})

it('waiting, ready and running runs are found without reading the history', async () => {
  const { store, schema, direct, close } = await freshPostgres()
  const pool = new pg.Pool({ connectionString: direct, max: 1 })
  await pool.query(`insert into ${schema}.runs (id, created_at, ready_at, priority, origin, keep, state, target,
    payload, ended) select n, 0, 0, 0, 'enqueue', 'all', 'succeeded', 'job:work', 'null', n from generate_series(1, 20000) n;
    analyze ${schema}.runs`)
  for (const state of ['waiting', 'ready', 'running'] as const) {
    const list = `select id from ${schema}.runs r where ${inStates('r', [state])} order by id desc limit 10`
    const plan = (await pool.query(`explain ${list}`)).rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).not.toMatch(/Seq Scan|runs_pkey/)
  }
  await pool.end()
  await store.close()
  await close()
})

it('running runs are found without reading all ready runs', { timeout: 60_000 }, () =>
  withObserver(async (opened, observer) => {
    const { store, schema } = opened
    await store.runs.enqueue(Array.from({ length: 3 }, () => newRun()))
    await store.runs.enqueue(Array.from({ length: 5_000 }, () => newRun({ delayMs: 60_000 })))
    await observer.query(`analyze ${schema}.runs`)
    const read = await counter(opened, observer)(3, async ({ join, claim, store: own }) => {
      await join()
      expect(await claim()).toHaveLength(3)
      expect((await own.runs.list({ states: ['running'], limit: 10 })).items).toHaveLength(3)
      expect((await own.runs.list({ states: ['running'], job: 'other', limit: 10 })).items).toEqual([])
    })
    expect(read).toBeLessThan(100)
  }),
)

it('the run that holds a key is found without reading all that wait for it', { timeout: 60_000 }, () =>
  withObserver(async (opened, observer) => {
    const { schema } = opened
    const { join, enqueue, claim } = new Scene(opened)
    await join()
    const first = await enqueue({ key: key('a') })
    expect(await claim()).toHaveLength(1)
    await observer.query(waiting(schema, "'key', 'a', null, null"))
    const read = await counter(opened, observer)(1, async ({ enqueue: make, claimOne, settle, tryEnqueue }) => {
      expect(await tryEnqueue({ key: key('a'), checkKey: true })).toEqual({ outcome: 'busy', run: first })
      await make()
      await settle(await claimOne())
    })
    expect(read).toBeLessThan(100)
  }),
)

it('a dedupe key is looked up among dedupe keys only', { timeout: 60_000 }, () =>
  withObserver(async (opened, observer) => {
    const { store, schema } = opened
    await store.runs.enqueue(Array.from({ length: 5_000 }, () => newRun({ delayMs: 60_000 })))
    // `analyze` comes before the insert, so Postgres plans for almost no waiting runs.
    await observer.query(`analyze ${schema}.runs; ${waiting(schema, "'key', 'busy', null, null")}`)
    const read = await counter(opened, observer)(1, async ({ join, enqueue, claimOne }) => {
      await join()
      await enqueue({ dedupe: 'once' })
      await claimOne()
    })
    expect(read).toBeLessThan(100)
  }),
)

it('the cost of ending a run does not depend on what waits for other keys', { timeout: 60_000 }, () =>
  withObserver(async (opened, observer) => {
    const { schema } = opened
    await observer.query(waiting(schema, "'overlap', null, 'long', n"))
    const read = await counter(opened, observer)(2, async ({ join, enqueue, claimOne, settle }) => {
      await join()
      await enqueue({ origin: 'trigger', schedule: 'bell' })
      await settle(await claimOne())
    })
    expect(read).toBeLessThan(100)
  }),
)

it('a waiter queue advances without reading all that wait in it', { timeout: 60_000 }, () =>
  withObserver(async (opened, observer) => {
    const { store, schema } = opened
    await store.runs.enqueue(Array.from({ length: 5_000 }, () => newRun({ delayMs: 60_000 })))
    // `analyze` comes before the insert, so Postgres plans for almost no runs with a schedule.
    await observer.query(`analyze ${schema}.runs; ${waiting(schema, "'overlap', null, 'bell', n")}`)
    const read = await counter(opened, observer)(3, async ({ join, enqueue, claimOne, settle }) => {
      await join()
      await enqueue({ origin: 'trigger', schedule: 'bell' })
      await settle(await claimOne())
      expect(await claimOne()).toMatchObject({ schedule: 'bell', origin: 'tick' })
    })
    expect(read).toBeLessThan(100)
  }),
)

it(
  'a key is handed from run to run without reading all of them, also where most share it',
  {
    timeout: 60_000,
  },
  () =>
    withObserver(async (opened, observer) => {
      const { store, schema } = opened
      await store.runs.enqueue(Array.from({ length: 5_000 }, () => newRun({ delayMs: 60_000 })))
      await observer.query(`${waiting(schema, "'key', 'busy', null, null")}; analyze ${schema}.runs`)
      const ROUNDS = 10
      const read = await counter(opened, observer)(6 * ROUNDS, async ({ join, enqueue, claim, settle }) => {
        await join()
        for (let round = 0; round < ROUNDS; round += 1) {
          for (let count = 0; count < 2; count += 1) await enqueue({ key: key('free') })
          for (let turn = 0; turn < 2; turn += 1) for (const run of await claim()) await settle(run)
        }
      })
      expect(read).toBeLessThan(1_000)
    }),
)

it('the cost of a beat is proportional to the runs of its instance', { timeout: 60_000 }, async () => {
  const { store, elapse, close } = await freshPostgres()
  const scene = new Scene({ store, elapse })
  await scene.join('one')
  const running: ClaimedRun[] = []
  const claimUpTo = async (count: number) => {
    const more = Array.from({ length: count - running.length }, () => newRun())
    await store.runs.enqueue(more)
    while (running.length < count)
      running.push(...(await scene.claim('one', { limit: 1_000, jobs: [{ name: 'work', limit: 1_000 }] })))
  }
  /** The shortest of several beats, because other load on the machine only adds to the duration. */
  const beatMs = async () => {
    const took: number[] = []
    for (let turn = 0; turn < 9; turn += 1) {
      const startedAt = performance.now()
      expect(await scene.beat('one', running)).toMatchObject({ alive: true, lost: [], cancel: [] })
      took.push(performance.now() - startedAt)
    }
    return Math.min(...took)
  }
  await claimUpTo(1_000)
  const few = await beatMs()
  await claimUpTo(10_000)
  // With ten times as many runs, a beat that compared every pair would take a hundred times as long. Longer beats meet more
  // of the other load on the machine, so they are measured until one of them is short enough.
  await expect.poll(beatMs, { timeout: 30_000 }).toBeLessThan(30 * few)
  await store.close()
  await close()
})

it('the cost of a beat is proportional to the claims since the last one, also when each claimed one run', {
  timeout: 60_000,
}, async () => {
  const { store, elapse, close, direct, schema } = await freshPostgres()
  const scene = new Scene({ store, elapse })
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  const beatMs = async (instance: string, count: number, ends: boolean) => {
    await scene.join(instance)
    await client.query(`insert into ${schema}.runs (id, created_at, ready_at, priority, origin, keep, state, target, payload,
      token, attempt, started_at, instance, claim)
      select nextval('${schema}.run_ids'), 0, 0, 0, 'enqueue', 'all', 'running', 'job:work', 'null', 1, 1, 0, '${instance}', n
      from generate_series(1, ${count}) n`)
    if (ends) await client.query(`delete from ${schema}.runs where instance = '${instance}'`)
    const { rows } = await client.query(
      `select id as run, token::integer from ${schema}.run where instance = '${instance}'`,
    )
    const startedAt = performance.now()
    const request = { instance, leaseMs: 600_000, attempts: rows, claimsSettled: count }
    expect(await store.instances.beat(request)).toMatchObject({ alive: true, lost: [] })
    const took = performance.now() - startedAt
    const left = await client.query(`select from ${schema}.runs where instance = '${instance}' and state = 'running'`)
    expect(left.rowCount).toBe(ends ? 0 : count)
    return took
  }
  for (const ends of [true, false]) {
    const few = await beatMs(`few ${ends}`, 1_000, ends)
    // With twenty times as many claims, a beat that compared every pair would take four hundred times as long.
    expect(await beatMs(`many ${ends}`, 20_000, ends)).toBeLessThan(30 * few + 500)
  }
  await client.end()
  await store.close()
  await close()
})

it('the cost of settling a run does not grow with the number of dedupe keys', {
  timeout: 60_000,
}, async () => {
  const { store, elapse, close, direct, schema } = await freshPostgres()
  const scene = new Scene({ store, elapse })
  await scene.join()
  const settleMs = async (name: string) => {
    await store.runs.enqueue(Array.from({ length: 200 }, (_, at) => newRun({ dedupe: `${name} ${at}` })))
    const runs = await scene.claim('one', { limit: 200, jobs: [{ name: 'work', limit: 200 }] })
    const startedAt = performance.now()
    const settled = await store.runs.settle(runs.map(({ id, token }) => ({ run: id, token, outcome: failed() })))
    expect(new Set(settled)).toEqual(new Set(['settled']))
    return performance.now() - startedAt
  }
  await settleMs('first')
  const few = await settleMs('few')
  const observer = new pg.Client({ connectionString: direct })
  await observer.connect()
  await observer.query(`insert into ${schema}.dedupes select 'job:work', g, 0, 0 from generate_series(1, 60000) g`)
  await observer.end()
  // A settlement that read all dedupe keys for each run would take seconds.
  expect(await settleMs('many')).toBeLessThan(3 * few + 300)
  await store.close()
  await close()
})
