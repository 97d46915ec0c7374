/**
 * Writing plans: one function records ticks and skips, does what the plans say about earlier runs, and moves the
 * schedules on.
 *
 * A plan is written only over what it was made from. The schedules have been locked since they were read, so their
 * versions and cursors are still the same. Their unfinished runs were not locked: this function locks those that the
 * plan takes back or waits for, reads all of them again, and compares. A schedule for which they differ is left as it is,
 * and stays due: the next call plans it again. Nothing that minds overlap can be added after the comparison, because
 * triggers and backfills with an overlap policy lock the schedule first.
 */

import { operation } from './connection/sql-function.js'
import { lockRuns, lockWaitingRuns, takeRuns } from './lock-order.js'
import { IS_TICK } from './run-row.js'
import { PLACE } from './schedule-row.js'
import { unfinishedRuns } from './unfinished-runs.js'

const NEW_RUNS = `
    insert into belfry.runs (id, target, options, origin, schedule, tick, payload, priority, keep, key, key_limit,
      key_waits, unstamped, state, waits_for, engaged, created_at, ready_at, start_by)
    select t.id, d.target, d.options, 0, d.schedule, t.at, d.payload, d.priority, d.keep, d.key,
      d.key_limit, d.key_waits, d.unstamped, case when t.waits or d.unstamped then 0 else 1 end,
      case when t.waits then 2 when d.unstamped then 1 else 0 end, true, v_now, coalesce(t.ready_at, t.at), t.start_by
    from (select nextval('belfry.run_ids') as id, t.* from unnest(t_definitions, t_at, t_ready, t_start_by, t_waits)
      as t(definition, at, ready_at, start_by, waits)) t
    cross join lateral (select * from belfry.definitions where id = t.definition limit 1) d
    where d.schedule <> all (stale)`

const KNOWN_TICK = `(select r.id from belfry.runs r where r.schedule = d.schedule and r.tick = t.at
      and coalesce(r.backfill, '') = '' and r.origin in (0, 2) limit 1)`

/**
 * Locks the runs that are to make room or to be waited for, so that none of them can start or end until the plan is
 * written. After an outage every schedule asks for this, and few have unfinished runs.
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

/** Schedules whose unfinished runs are no longer those that their plan was made from. */
const FIND_STALE = `
    stale := array(select m.schedule from unnest(m_schedules, m_unfinished) as m(schedule, unfinished)
      where ${unfinishedRuns('m.schedule', 'v_now')}::text is distinct from m.unfinished);`

const UNBEGUN = `state < 3 and not running and ${IS_TICK} and attempt = 0`

/** Under a policy that drops what was missed, older ticks that never began are taken back. */
const TAKE_BACK = `
    v_missed := array(select r.id from unnest(v_retract, v_through) as g(schedule, through) cross join lateral (
      select id, tick from belfry.runs where schedule = g.schedule and ${UNBEGUN} offset 0) r
      where r.tick <= g.through and g.schedule <> all (stale));
    ${takeRuns('v_runs', `id = any (v_missed) and ${UNBEGUN}`)}
    v_names := array(select key from belfry.runs where id = any (v_runs) and key is not null);
    perform belfry.take_names(v_names);
    for r in select * from belfry.runs where id = any (v_runs) order by id loop
      perform belfry.end_run(r, 6, v_now, 'missed', null, null);
      v_lanes := v_lanes || r.schedule;
      wakes := wakes | 16;
    end loop;`

/** Arrays that say nothing may be left empty: what is missing at their ends is null. */
export const RECORD_FUNCTIONS = operation(
  `record_plans(v_now bigint, v_due bigint, v_place bigint,
    s_rows tid[], s_cursors bigint[], s_remaining bigint[], s_next bigint[], s_due bigint[], s_finished bigint[],
    t_definitions bigint[], t_at bigint[], t_ready bigint[], t_start_by bigint[], t_waits boolean[],
    k_schedules text[], k_from bigint[], k_to bigint[], k_count bigint[], k_reasons text[],
    v_retract text[], v_through bigint[], v_way text[], v_behind text[], v_keys text[],
    m_schedules text[], m_unfinished text[],
    out recorded integer, out next_due_at bigint, out wakes integer, out stale text[])`,
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
  stale := '{}';
  if cardinality(v_keys) > 0 then perform belfry.make_names(v_keys); end if;
  if cardinality(v_retract || v_way || v_behind) > 0 then
    ${LOCK_EARLIER}
  end if;
  if cardinality(m_schedules) > 0 then
    ${FIND_STALE}
  end if;
  if cardinality(v_open) > 0 and cardinality(v_retract) > 0 then
    ${TAKE_BACK}
  end if;
  for g in select * from unnest(v_way) as g(schedule) where schedule <> all (stale) order by schedule loop
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
    ${NEW_RUNS} and ${KNOWN_TICK} is null;
    get diagnostics recorded = row_count;
  end;
  if cardinality(k_schedules) > 0 then
    insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
      select k.*, v_now from unnest(k_schedules, k_from, k_to, k_count, k_reasons) as k(schedule, from_at, to_at, count, reason)
      where k.schedule <> all (stale);
  end if;
  update belfry.schedules s set cursor = g.cursor, remaining = g.remaining, next_at = g.next_at, due_at = g.due_at,
    finished_at = g.finished_at, place = g.place
    from (select ${PLACE} as place, g.* from unnest(s_rows, s_cursors, s_remaining, s_next, s_due, s_finished)
      as g(row, cursor, remaining, next_at, due_at, finished_at)) g
    where s.ctid = g.row and s.id <> all (stale);
  if recorded > 0 then wakes := wakes | 2; end if;
  wakes := wakes | belfry.hand_on(v_names, v_lanes, v_now * 1000,
    case when cardinality(v_retract || v_way) > 0 then 'give up' else 'wait' end);
  -- What is left begins behind the last that was taken: what was taken is passed over, and not read again.
  next_due_at := least((select min(due) from unnest(s_due) due),
    (select min(s.due_at) from unnest(stale) g(id) cross join lateral (
      select due_at from belfry.schedules where id = g.id limit 1) s),
    (select due_at from belfry.schedules where due_at is not null and (due_at, place) > (v_due, v_place) order by due_at, place limit 1));
end`,
)
