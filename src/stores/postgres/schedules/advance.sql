-- Records ticks in one short transaction: `take_due_schedules` locks schedules that are due, the planner decides in the
-- calling process, and `record_ticks` writes the plans.
--
-- - Two instances advance at once: each skips the schedules that the other has locked.
-- - Crash or pause before the commit: the transaction is rolled back, by the server's idle timeout if necessary, and
--   the schedules are still due.
-- - Crash after the commit, or a lost reply: the cursors have moved, and a tick is unique by (schedule, instant)
--   anyway.
--
-- A plan is written only if the state that it was made from still holds. The schedules stay locked from the read to the
-- commit. Their unfinished runs are not locked while the planner decides. So `record_ticks` locks the runs that a plan
-- takes back or waits for, reads all unfinished runs again, and compares. A schedule for which they differ is left as
-- it is and stays due. After the comparison no run that counts for overlap can be added, because triggers and backfills
-- with an overlap policy lock the schedule first.

create or replace function belfry.take_due_schedules(schedule_limit integer, lookahead_ms bigint)
returns table (now_ms bigint, id text, definition bigint, anchor bigint, cursor bigint, remaining bigint, due_at bigint,
  place bigint, minds_overlap boolean, unfinished text)
language plpgsql as $$
begin
  perform belfry.durable();
  now_ms := belfry.now_us() / 1000;
  return query
  select take_due_schedules.now_ms, s.id, s.definition, s.anchor, s.cursor, s.remaining, s.due_at, s.place, s.minds_overlap,
    case when s.minds_overlap then belfry.unfinished_text(s.id, take_due_schedules.now_ms) end
  from (
    select * from belfry.schedules d where d.due_at <= take_due_schedules.now_ms + lookahead_ms
    order by d.due_at, d.place limit schedule_limit for update skip locked) s
  order by s.due_at, s.place;
end $$;

-- The store's time and the earliest instant at which a schedule is due. Called when none is due now.
create or replace function belfry.next_due(out now_ms bigint, out next_due_at bigint) language plpgsql as $$
begin
  now_ms := belfry.now_us() / 1000;
  select s.due_at into next_due_at from belfry.schedules s where s.due_at is not null order by s.due_at limit 1;
end $$;

-- Records ticks and skips, applies the plans to earlier runs, and moves the schedules on. `last_due` and `last_place`
-- are those of the last schedule that was taken.
create or replace function belfry.record_ticks(
  progress belfry.schedule_progress[], ticks belfry.planned_tick[], skips belfry.planned_skip[],
  now_ms bigint, last_due bigint, last_place bigint,
  out recorded integer, out next_due_at bigint, out hints belfry.hint[], out stale text[]
) language plpgsql as $$
declare
  keys text[] := array[]::text[];
  schedule_ids text[] := array[]::text[];
  -- Schedules that have unfinished runs, and whose plans take runs back, cancel them, or wait for them.
  open_ids text[] := array[]::text[];
  held_keys text[];
  takes_back boolean;
  way record;
  schedule_id text;
begin
  hints := '{}';
  stale := '{}';
  perform belfry.make_names(array(select distinct t.key from unnest(ticks) t where t.key is not null));
  takes_back := coalesce(
    (select bool_or(p.retract_through is not null or p.cancel_unfinished) from unnest(progress) p), false);
  if takes_back or exists (select 1 from unnest(ticks) t where t.waits) then
    open_ids := array(
      select g.schedule from (
        select p.schedule from unnest(progress) p where p.retract_through is not null or p.cancel_unfinished
        union select t.schedule from unnest(ticks) t where t.waits) g
      cross join lateral (
        select 1 from belfry.runs where schedule = g.schedule and state < 'succeeded' limit 1) any_open);
  end if;
  if cardinality(open_ids) > 0 then
    held_keys := array(select r.key from belfry.open_runs(open_ids) r where r.key is not null);
    perform belfry.lock_names(held_keys);
    perform belfry.lock_runs(
      array(select r.id from belfry.open_runs(open_ids) r where r.engaged or r.ready_at <= now_ms), held_keys);
    if takes_back then
      perform belfry.lock_dedupes(array(
        select r.id from unnest(progress) p cross join lateral belfry.open_runs(array[p.schedule]) r
        where p.cancel_unfinished and r.dedupe is not null));
      perform belfry.lock_overlap_queues(array(
        select p.schedule from unnest(progress) p
        where (p.retract_through is not null or p.cancel_unfinished) and p.schedule = any (open_ids)));
    end if;
  end if;
  stale := array(
    select p.schedule from unnest(progress) p
    where p.mind_overlap and belfry.unfinished_text(p.schedule, now_ms) is distinct from p.made_from);

  if cardinality(open_ids) > 0 and takes_back then
    -- Where the policy drops missed ticks, older ticks that never began are skipped.
    keys := belfry.end_idle_runs(
      array(
        select t.id from unnest(progress) p cross join lateral belfry.idle_ticks(array[p.schedule]) t
        where p.schedule <> all (stale) and p.schedule = any (open_ids) and t.attempt = 0 and t.tick <= p.retract_through),
      'skipped', 'missed', now_ms);
    hints := array['settled']::belfry.hint[];
    schedule_ids := array(
      select p.schedule from unnest(progress) p
      where (p.cancel_unfinished or p.retract_through is not null) and p.schedule <> all (stale));
    for schedule_id in
      select p.schedule from unnest(progress) p
      where p.cancel_unfinished and p.schedule <> all (stale) order by p.schedule
    loop
      select * into way from belfry.make_way(schedule_id, now_ms);
      keys := keys || way.keys;
      hints := hints || way.hints;
    end loop;
  end if;

  recorded := belfry.insert_ticks(ticks, stale, now_ms);
  insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
  select k.schedule, k.from_at, k.to_at, k.count, k.reason, now_ms from unnest(skips) k where k.schedule <> all (stale);
  perform belfry.move_schedules(array(select p from unnest(progress) p where p.moves and p.schedule <> all (stale)));
  if recorded > 0 then
    hints := hints || 'runs'::belfry.hint;
  end if;
  schedule_ids := schedule_ids || array(select distinct t.schedule from unnest(ticks) t where t.waits);
  hints := hints || belfry.pass_on(
    keys, schedule_ids, now_ms * 1000, case when takes_back then 'give up' else 'wait' end);
  -- The search for the next due schedule begins behind the last one that was taken, so it does not read those that
  -- were.
  next_due_at := least(
    (select min(p.due_at) from unnest(progress) p where p.moves and p.schedule <> all (stale)),
    (select min(s.due_at) from unnest(stale) g(id) cross join lateral (
      select due_at from belfry.schedules where id = g.id limit 1) s),
    (select s.due_at from belfry.schedules s
      where s.due_at is not null and (s.due_at, s.place) > (last_due, last_place) order by s.due_at, s.place limit 1));
end $$;

-- Creates the runs of ticks, from the definitions of their schedules. A run for the same instant may exist already,
-- recorded for an earlier schedule of the same id.
create or replace function belfry.insert_ticks(ticks belfry.planned_tick[], stale text[], now_ms bigint) returns integer
language plpgsql as $$
declare
  count integer;
begin
  insert into belfry.runs (id, target, options, origin, schedule, tick, payload, priority, keep, key, key_limit,
    key_when_busy, unstamped, state, waits_for, engaged, created_at, ready_at, start_by,
    by_deadline)
  select t.id, d.target, d.options, 'tick', d.schedule, t.at, d.payload, d.priority, d.keep, d.key, d.key_limit,
    d.key_when_busy, d.unstamped, case when t.waits or d.unstamped then 'waiting' else 'ready' end::belfry.run_state,
    case when t.waits then 'overlap' when d.unstamped then 'stamp' else 'nothing' end::belfry.wait_reason, true, now_ms,
    coalesce(t.ready_at, t.at), t.start_by, t.by_deadline
  from (select nextval('belfry.run_ids') as id, n.* from unnest(ticks) n) t
  cross join lateral (select * from belfry.definitions where id = t.definition limit 1) d
  where t.schedule <> all (stale)
  on conflict do nothing;
  get diagnostics count = row_count;
  return count;
end $$;

-- Moves schedules on. Planned at each call: by a plan that was made while the table was small, Postgres may read all
-- schedules for each item of the list.
create or replace function belfry.move_schedules(progress belfry.schedule_progress[]) returns void language plpgsql
set plan_cache_mode = force_custom_plan as $$
begin
  update belfry.schedules s
  set cursor = p.cursor, remaining = p.remaining, next_at = p.next_at, due_at = p.due_at, finished_at = p.finished_at,
    place = nextval('belfry.places')
  from unnest(progress) p
  where s.id = p.schedule;
end $$;
