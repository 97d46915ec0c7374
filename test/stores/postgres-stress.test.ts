import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { seededRandom } from '../../src/testing/random.js'
import { serverUrl } from '../servers/server-url.js'
import { finishAllRuns, runRandomOperation, shared } from './stress.js'

/** A separate database, because the server counts deadlocks per database. */
const name = `stress_${process.pid}_${Date.now().toString(36)}`
const seed = Number(process.env.SEED ?? 553_883)
const seconds = Number(process.env.BELFRY_STRESS_SECONDS ?? 12)
const HANDLES = 4
const WORKERS_EACH = 3

let url: string

beforeAll(async () => {
  url = await serverUrl('postgres')
  await onServer(`create database ${name}`)
})

afterAll(() => onServer(`drop database if exists ${name} with (force)`))

it(
  `conflicting operations never fail, leave nothing unfinished and never deadlock (seed ${seed})`,
  async () => {
    const own = Object.assign(new URL(url), { pathname: `/${name}` }).href
    await migratePostgres({ url: own })
    const pools = Array.from({ length: HANDLES }, () => new pg.Pool({ connectionString: own, max: WORKERS_EACH }))
    const stores = pools.map((pool) => postgres({ pool, listen: false }))
    const common = shared()
    const until = performance.now() + seconds * 1_000
    let operations = 0

    async function work(store: Store, at: number): Promise<void> {
      const random = seededRandom(seed * 1_000 + at)
      while (performance.now() < until) {
        await runRandomOperation(store, random, common)
        operations += 1
      }
    }

    try {
      await Promise.all(
        stores.flatMap((store, at) => [0, 1, 2].map((worker) => work(store, at * WORKERS_EACH + worker))),
      )
      const [first] = stores
      expect(first && (await finishAllRuns(first, 60_000))).toEqual([])
      for (const [what, query] of Object.entries(INVARIANTS)) {
        expect((await pools[0]?.query(query))?.rows, what).toEqual([])
      }
    } finally {
      await Promise.all(pools.map((pool) => pool.end()))
    }
    const deadlocks = await deadlocksSeen()
    console.log(JSON.stringify({ seed, seconds, operations, deadlocks }))
    expect(operations).toBeGreaterThan(seconds * 10)
    expect(deadlocks).toBe(0)
  },
  (seconds + 120) * 1_000,
)

/** Invariants when all operations have ended. Each query selects the rows that violate one. */
const INVARIANTS = {
  'a lease is held by no run that has ended': `select l.* from belfry.leases l left join belfry.runs r on r.id = l.run
    where l.run is not null and r.state is distinct from 'running'`,
  'every run that runs belongs to a claim of its instance': `select id from belfry.runs
    where state = 'running' and (instance is null or claim is null or token is null)`,
  'what waits, and nothing else, says what it waits for': `select id from belfry.runs
    where (state = 'waiting') <> (waits_for <> 'nothing')`,
  'a dedupe key that is taken belongs to an unfinished run': `select d.* from belfry.dedupes d
    left join belfry.runs r on r.id = d.run where d.until is null and coalesce(r.state, 'succeeded') >= 'succeeded'`,
  'every holder and waiter of a name has its row': `select name from belfry.leases union select name from belfry.waiters
    except select name from belfry.lock_names`,
  'every schedule has its definition, and no other is left': `select s.id, d.id from belfry.schedules s
    full join belfry.definitions d on d.id = s.definition where s.id is null or d.id is null`,
}

/** The server counts a session's deadlocks when the session ends, soon after its connection. */
async function deadlocksSeen(): Promise<number> {
  for (;;) {
    const [row] = await onServer(`select deadlocks,
      (select count(*) from pg_stat_activity where datname = '${name}') as sessions
      from pg_stat_database where datname = '${name}'`)
    if (row?.sessions === '0') return Number(row.deadlocks)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function onServer(sql: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
