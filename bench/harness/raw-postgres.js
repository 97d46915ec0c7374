// @ts-check
/**
 * The minimum that a scheduler on Postgres has to do, without planning, keys, policies or waiting: prepared statements,
 * 1,000 rows at a time. The tables have Belfry's columns, the same durability, and only the necessary indexes (run id,
 * unique tick, due schedules, claimable runs).
 */
import { migratePostgres } from '../../dist/stores/postgres/index.js'
import { numberArray, textArray } from './array-text.js'
import { dropSchema, freshSchema, openPool } from './postgres.js'

export const RAW_BATCH = 1_000

const TABLES = `
create table raw.schedules (like raw.belfry_schedules);
create table raw.runs (like raw.belfry_runs including defaults);
alter table raw.schedules add primary key (id);
create index due on raw.schedules (due_at);
create sequence raw.run_ids;
alter table raw.runs add primary key (id);
create unique index ticks on raw.runs (schedule, tick) where schedule is not null;
create index claims on raw.runs (target, priority desc, ready_at, id) where state = 'ready';
create table raw.locks (name text primary key, holder text, token bigint, expires_at bigint, instance text)
  with (fillfactor = 50)`

const FILL_SCHEDULES = `insert into raw.schedules (id, version, definition, anchor, cursor, due_at, place, next_at,
    created_at, updated_at, minds_overlap, removable)
  select 'bench/' || at, at, at, 0, 0, 0, at, 0, 0, 0, false, true from generate_series(0, $1::integer - 1) at`

const COMMON =
  'claim, priority, attempt, failures, takeovers, keep, waits_for, unstamped, engaged, taken_over, cancel_requested'
const COMMON_VALUES = `0, 0, 0, 0, 0, 'all', 'nothing', false, true, false, false`

const TAKE = {
  name: 'raw-take',
  text: `select id, due_at, (extract(epoch from clock_timestamp()) * 1000)::bigint from raw.schedules where due_at <= $1
    order by due_at limit ${RAW_BATCH} for update skip locked`,
}
const RECORD = {
  name: 'raw-record',
  text: `with moved as (update raw.schedules s set cursor = g.at, due_at = g.next, next_at = g.next
      from unnest($1::text[], $2::bigint[], $3::bigint[]) as g(id, at, next) where s.id = g.id)
    insert into raw.runs (id, target, origin, schedule, tick, payload, state, created_at, ready_at, ${COMMON})
    select nextval('raw.run_ids'), 'job:noop', 'tick', g.id, g.at, 'null', 'ready', $4, g.at, ${COMMON_VALUES}
    from unnest($1::text[], $2::bigint[]) as g(id, at) on conflict do nothing`,
}
const ENQUEUE_COLUMNS = `id, target, origin, payload, state, created_at, ready_at, ${COMMON}`
const ENQUEUE_MANY = {
  name: 'raw-enqueue-many',
  text: `insert into raw.runs (${ENQUEUE_COLUMNS})
    select nextval('raw.run_ids'), 'job:noop', 'enqueue', g.payload, 'ready', g.at, g.at, ${COMMON_VALUES}
    from unnest($1::text[], $2::bigint[]) as g(payload, at) returning id`,
}
const ENQUEUE_ONE = {
  name: 'raw-enqueue-one',
  text: `insert into raw.runs (${ENQUEUE_COLUMNS})
    values (nextval('raw.run_ids'), 'job:noop', 'enqueue', $1, 'ready', $2, $2, ${COMMON_VALUES}) returning id`,
}
const CLAIM = {
  name: 'raw-claim',
  text: `update raw.runs r set state = 'running', attempt = r.attempt + 1, token = $2, started_at = $1, instance = 'raw', claim = 1
    from (select id from raw.runs where state = 'ready' and target = 'job:noop' and ready_at <= $1
      order by priority desc, ready_at, id limit ${RAW_BATCH} for update skip locked) c
    where r.id = c.id returning r.id, r.token, r.target, r.schedule, r.tick, r.payload, r.attempt`,
}
const COMPLETE = {
  name: 'raw-complete',
  text: `update raw.runs r set state = 'succeeded', finished_at = $3, ended = $3 from unnest($1::bigint[], $2::bigint[]) as g(id, token)
    where r.id = g.id and r.token = g.token and r.state = 'running'`,
}
const DELETE = {
  name: 'raw-delete',
  text: `delete from raw.runs r using unnest($1::bigint[], $2::bigint[]) as g(id, token)
    where r.id = g.id and r.token = g.token and r.state = 'running'`,
}
const LOCK = {
  name: 'raw-lock',
  text: `insert into raw.locks as l values ($1, $2, (extract(epoch from clock_timestamp()) * 1000000)::bigint,
      (extract(epoch from clock_timestamp()) * 1000)::bigint + $3, null)
    on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at,
      token = greatest(l.token + 1, excluded.token)
    where l.expires_at <= (extract(epoch from clock_timestamp()) * 1000)::bigint returning token, expires_at`,
}
const UNLOCK = {
  name: 'raw-unlock',
  text: 'update raw.locks set expires_at = 0, holder = null where name = $1 and holder = $2',
}

/** @typedef {Awaited<ReturnType<typeof openRawPostgres>>} RawPostgres */

/** @param {{ schedules?: number, connections?: number }} [size] */
export async function openRawPostgres({ schedules = 0, connections } = {}) {
  const schema = await freshSchema()
  const belfry = `${schema}_columns`
  const pool = await openPool(connections)
  await migratePostgres({ pool, schema: belfry })
  /** @param {string} text */
  const here = (text) => text.replaceAll('raw.belfry_', `${belfry}.`).replaceAll('raw.', `${schema}.`)
  await pool.query(here(`create schema ${schema}; ${TABLES}`))
  await pool.query(here(FILL_SCHEDULES), [schedules])
  await pool.query(here('analyze raw.schedules; checkpoint'))
  /** @type {Map<object, { name: string, text: string }>} */
  const known = new Map()
  /** @param {{ name: string, text: string }} statement @param {unknown[]} values */
  const prepared = (statement, values) => {
    const query = known.get(statement) ?? { name: `${schema}-${statement.name}`, text: here(statement.text) }
    known.set(statement, query)
    return { ...query, values, rowMode: 'array' }
  }
  let now = 0
  let token = Date.now() * 1_000

  return {
    schema,
    pool,
    here,

    /** Records one tick of each schedule: inserts its run and moves its cursor. */
    async recordTicks() {
      now += 1_000
      const client = await pool.connect()
      for (let taken = RAW_BATCH; taken === RAW_BATCH; ) {
        await client.query('begin')
        const { rows } = await client.query(prepared(TAKE, [now]))
        taken = rows.length
        if (taken > 0) {
          const ids = textArray(rows.map(([id]) => id))
          const at = numberArray(rows.map(([, due]) => due))
          const next = numberArray(rows.map(([, due]) => Number(due) + 1_000))
          await client.query(prepared(RECORD, [ids, at, next, rows[0]?.[2]]))
        }
        await client.query('commit')
      }
      client.release()
    },

    /** @param {number} count */
    async enqueueMany(count) {
      const at = Date.now()
      for (let made = 0; made < count; made += RAW_BATCH) {
        const size = Math.min(RAW_BATCH, count - made)
        const payloads = textArray(Array.from({ length: size }, () => 'null'))
        await pool.query(prepared(ENQUEUE_MANY, [payloads, numberArray(Array.from({ length: size }, () => at))]))
      }
    },

    async enqueueOne() {
      await pool.query(prepared(ENQUEUE_ONE, ['null', Date.now()]))
    },

    async claim() {
      token += 1
      return (await pool.query(prepared(CLAIM, [Date.now(), token]))).rows
    },

    /** Claims and ends a batch of runs, and returns its size. @param {'all' | 'none'} keep */
    async drain(keep) {
      const rows = await this.claim()
      if (rows.length === 0) return 0
      const ids = numberArray(rows.map(([id]) => id))
      const tokens = numberArray(rows.map(([, own]) => own))
      if (keep === 'all') await pool.query(prepared(COMPLETE, [ids, tokens, Date.now()]))
      else await pool.query(prepared(DELETE, [ids, tokens]))
      return rows.length
    },

    /** @param {string} name */
    async lockAndUnlock(name) {
      await pool.query(prepared(LOCK, [name, 'raw', 30_000]))
      await pool.query(prepared(UNLOCK, [name, 'raw']))
    },

    async close() {
      await pool.end()
      await dropSchema(schema)
      await dropSchema(belfry)
    },
  }
}
