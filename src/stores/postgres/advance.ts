/**
 * Recording ticks: one short transaction a batch. It takes due schedules that nobody else is at, plans them here with the
 * database's now, and writes everything in one statement.
 *
 * - Two that advance at once: each skips the rows that the other holds.
 * - Crash or stop in between: the transaction is rolled back, by the server's own timeout if need be, and the schedules
 *   are as due as before.
 * - Crash after the commit, or a lost reply: cursors have moved, and a tick is unique by (schedule, instant) anyway.
 * - A run that a tick has to wait for ends meanwhile: those runs are held while the waiting one is written, so that
 *   either their ending sees it, or it sees their ending and goes on at once.
 */
import type { Unfinished } from '../../core/plan.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import type { Database, Row, Transaction } from './connection.js'
import type { Definitions } from './definitions.js'
import { toDue } from './due-schedule.js'
import { lockRuns, lockWaitingRuns, takeRuns } from './lock-order.js'
import { PlanWrites } from './plan-writes.js'
import { IS_TICK, stateOf } from './run-row.js'
import { PLACE } from './schedule-row.js'
import { operation } from './sql-function.js'

const UNFINISHED = `(select json_agg(json_build_array(${stateOf('r')}, r.attempt > 0, case when r.origin = 0 then r.tick end)
    order by r.id) from belfry.runs r where r.schedule = s.id and r.state < 3
    and (r.waits_for = 2 or r.engaged or r.ready_at <= s.now_ms))`

/** Numbers only: the statement travels in one message with the `begin`, which can have no parameters. */
function takeDue(limit: number, lookaheadMs: number): string {
  return `select belfry.durable(); set local enable_seqscan = off; set local jit = off;
  select s.now_ms, case when s.minds_overlap then ${UNFINISHED} end, s.row, s.id, s.definition, s.anchor, s.cursor,
    s.remaining, s.due_at, s.place from (
    select id, ctid as row, definition, anchor, cursor, remaining, due_at, place, minds_overlap,
      (select belfry.now_us() / 1000) as now_ms from belfry.schedules
    where due_at <= (select belfry.now_us() / 1000 + ${Math.ceil(lookaheadMs)})
    order by due_at, place limit ${Math.ceil(limit)} for update skip locked) s order by s.due_at, s.place`
}

const NEW_RUNS = `
    insert into belfry.runs (id, target, options, origin, schedule, tick, payload, priority, keep, key, key_limit,
      key_waits, unstamped, state, waits_for, engaged, created_at, ready_at, start_by)
    select t.id, d.target, d.options, 0, d.schedule, t.at, d.payload, d.priority, d.keep, d.key,
      d.key_limit, d.key_waits, d.unstamped, case when t.waits or d.unstamped then 0 else 1 end,
      case when t.waits then 2 when d.unstamped then 1 else 0 end, true, v_now, coalesce(t.ready_at, t.at), t.start_by
    from (select nextval('belfry.run_ids') as id, t.* from unnest(t_definitions, t_at, t_ready, t_start_by, t_waits)
      as t(definition, at, ready_at, start_by, waits)) t
    cross join lateral (select * from belfry.definitions where id = t.definition limit 1) d`

const KNOWN_TICK = `(select r.id from belfry.runs r where r.schedule = d.schedule and r.tick = t.at
      and coalesce(r.backfill, '') = '' and r.origin in (0, 2) limit 1)`

/**
 * What was recorded before and is to make room, or is to be waited for: all of it, before anything is decided. After an
 * outage that is asked of every schedule, and hardly any has something unfinished.
 */
const LOCK_EARLIER = `
    v_open := array(select g.schedule from (select distinct unnest(v_retract || v_way || v_behind) as schedule) g
      cross join lateral (select 1 from belfry.runs where schedule = g.schedule and state < 3 limit 1) open);
    if cardinality(v_open) > 0 then
      v_held := array(select key from belfry.runs where schedule = any (v_open) and state < 3 and key is not null);
      perform belfry.lock_names(v_held);
      ${lockRuns('schedule = any (v_open) and state < 3 and (engaged or ready_at <= v_now)', 'v_held')}
      perform belfry.lock_dedupes(array(select id from belfry.runs
        where cardinality(v_way) > 0 and schedule = any (v_way) and state < 3 and dedupe is not null));
      ${lockWaitingRuns('schedule = any (array(select unnest(v_open) intersect select unnest(v_retract || v_way))) and state < 3')}
    end if;`

const UNBEGUN = `state < 3 and not running and ${IS_TICK} and attempt = 0`

/** Under a policy that drops what was missed, older ticks that never began are taken back. */
const TAKE_BACK = `
    v_missed := array(select r.id from unnest(v_retract, v_through) as g(schedule, through) cross join lateral (
      select id, tick from belfry.runs where schedule = g.schedule and ${UNBEGUN} offset 0) r where r.tick <= g.through);
    ${takeRuns('v_runs', `id = any (v_missed) and ${UNBEGUN}`)}
    v_names := array(select key from belfry.runs where id = any (v_runs) and key is not null);
    perform belfry.take_names(v_names);
    for r in select * from belfry.runs where id = any (v_runs) order by id loop
      perform belfry.end_run(r, 6, v_now, 'missed', null, null);
      v_lanes := v_lanes || r.schedule;
      wakes := wakes | 16;
    end loop;`

/** Arrays that say nothing may be left empty: what is missing at their ends is null. */
const RECORD_FUNCTION = operation(
  `record_ticks(v_now bigint, v_due bigint, v_place bigint,
    s_rows tid[], s_cursors bigint[], s_remaining bigint[], s_next bigint[], s_due bigint[], s_finished bigint[],
    t_definitions bigint[], t_at bigint[], t_ready bigint[], t_start_by bigint[], t_waits boolean[],
    k_schedules text[], k_from bigint[], k_to bigint[], k_count bigint[], k_reasons text[],
    v_retract text[], v_through bigint[], v_way text[], v_behind text[], v_keys text[],
    out recorded integer, out next_due_at bigint, out wakes integer)`,
  'record',
  `
declare
  v_names text[] := '{}';
  v_lanes text[] := '{}';
  v_held text[];
  v_open text[] := '{}';
  v_missed bigint[];
  v_runs bigint[];
  v_step record;
  g record;
  r belfry.runs;
begin
  wakes := 0;
  if cardinality(v_keys) > 0 then perform belfry.make_names(v_keys); end if;
  if cardinality(v_retract || v_way || v_behind) > 0 then
    ${LOCK_EARLIER}
  end if;
  if cardinality(v_open) > 0 and cardinality(v_retract) > 0 then
    ${TAKE_BACK}
  end if;
  for g in select * from unnest(v_way) as g(schedule) order by schedule loop
    select * into v_step from belfry.make_way(g.schedule, v_now);
    v_names := v_names || v_step.names;
    v_lanes := v_lanes || g.schedule;
    wakes := wakes | v_step.wakes;
  end loop;

  v_lanes := v_lanes || v_behind;
  begin
    ${NEW_RUNS};
    get diagnostics recorded = row_count;
  exception when unique_violation then
    -- An instant was recorded under an earlier schedule of the same name. Others cannot come in between: the schedule's
    -- row is ours.
    ${NEW_RUNS} where ${KNOWN_TICK} is null;
    get diagnostics recorded = row_count;
  end;
  if cardinality(k_schedules) > 0 then
    insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
      select k.*, v_now from unnest(k_schedules, k_from, k_to, k_count, k_reasons) as k;
  end if;
  update belfry.schedules s set cursor = g.cursor, remaining = g.remaining, next_at = g.next_at, due_at = g.due_at,
    finished_at = g.finished_at, place = g.place
    from (select ${PLACE} as place, g.* from unnest(s_rows, s_cursors, s_remaining, s_next, s_due, s_finished)
      as g(row, cursor, remaining, next_at, due_at, finished_at)) g
    where s.ctid = g.row;
  if recorded > 0 then wakes := wakes | 2; end if;
  wakes := wakes | belfry.hand_on(v_names, v_lanes, v_now * 1000,
    case when cardinality(v_retract || v_way) > 0 then 'give up' else 'wait' end);
  -- What is left begins behind the last that was taken: what was taken is passed over, and not read again.
  next_due_at := least((select min(due) from unnest(s_due) due), (select due_at from belfry.schedules
    where due_at is not null and (due_at, place) > (v_due, v_place) order by due_at, place limit 1));
end`,
)

export const ADVANCE_FUNCTIONS = RECORD_FUNCTION

const RECORD = `select recorded, next_due_at, wakes from belfry.record_ticks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
  $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`
const LOOK = `select belfry.now_us() / 1000,
  (select due_at from belfry.schedules where due_at is not null order by due_at limit 1)`

export async function advanceSchedules(db: Database, definitions: Definitions, request: AdvanceRequest) {
  const { limit, lookaheadMs } = request
  const { result, wakes } = await db.transaction(takeDue(limit, lookaheadMs), async (rows, tx) => {
    if (rows.length === 0) return { result: await lookAround(tx), wakes: 0 }
    await definitions.load(
      tx,
      rows.map((row) => Number(row[4])),
    )
    return record(tx, rows, definitions, request)
  })
  db.announce(wakes)
  return result
}

async function lookAround(tx: Transaction): Promise<AdvanceResult> {
  const [row] = await tx.run(LOOK, [])
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  return { now: Number(row?.[0]), schedules: 0, recorded: 0, skipped: 0, ...nextDueAt }
}

const STATES = ['waiting', 'ready', 'running'] as const

function toUnfinished(text: string | null): Unfinished[] {
  if (text === null) return []
  return (JSON.parse(text) as [number, boolean, number | null][]).map(([state, started, tick]) => ({
    ...{ state: STATES[state] ?? 'ready', started },
    ...(tick === null ? {} : { tick }),
  }))
}

async function record(tx: Transaction, rows: readonly Row[], definitions: Definitions, request: AdvanceRequest) {
  const now = Number(rows[0]?.[0])
  const writes = new PlanWrites(now)
  for (const row of rows) {
    const due = toDue(row)
    const unfinished = toUnfinished(row[1] ?? null)
    const plan = request.plan(definitions.plannable(due), unfinished, now, now + request.lookaheadMs)
    writes.add(due, plan, definitions.keyOf(due))
  }
  const last = rows.at(-1)
  const [row] = await tx.run(RECORD, [now, last?.[8], last?.[9], ...writes.arrays()])
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  const { skipped } = writes
  const result: AdvanceResult = { now, schedules: rows.length, recorded: Number(row?.[0]), skipped, ...nextDueAt }
  return { result, wakes: Number(row?.[2]) }
}
