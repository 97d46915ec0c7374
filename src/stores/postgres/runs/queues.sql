-- Reads from the queues of runs. Each query is written so that Postgres uses the one index that has the queue in order,
-- whatever its statistics say.

-- The oldest run that waits for a key.
create or replace function belfry.oldest_waiting_for_key(wanted text) returns belfry.runs language plpgsql as $$
declare
  run belfry.runs;
begin
  select * into run from belfry.runs r
  where r.state = 'waiting' and r.waits_for = 'key'
    and (case when r.waits_for = 'key' then r.key else r.schedule end) = wanted
  order by r.id limit 1;
  return run;
end $$;

-- The oldest due run of a key. Both bounds of the range are equal, and the order names the columns of `runs_key`.
-- Otherwise Postgres may scan all runs in order of id, because it expects to find a run of the key soon.
create or replace function belfry.oldest_due_of_key(wanted text, now_ms bigint) returns bigint language plpgsql as $$
begin
  return (
    select r.id from belfry.runs r
    where (r.key, r.state) >= (wanted, 'ready'::belfry.run_state) and (r.key, r.state) <= (wanted, 'ready'::belfry.run_state)
      and r.key is not null and r.state < 'succeeded' and r.ready_at <= now_ms
    order by r.key, r.state, r.id limit 1);
end $$;

-- The oldest run that waits for others of its schedule.
create or replace function belfry.oldest_waiting_for_overlap(wanted text) returns belfry.runs language plpgsql as $$
declare
  run belfry.runs;
begin
  select * into run from belfry.runs r
  where r.state = 'waiting' and r.waits_for = 'overlap'
    and (case when r.waits_for = 'key' then r.key else r.schedule end) = wanted
  order by r.id limit 1;
  return run;
end $$;

-- The unfinished runs of a schedule that count for overlap: those that wait for others of it, those that are due, and
-- those that have begun.
create or replace function belfry.unfinished_runs(schedule_id text, now_ms bigint) returns setof belfry.runs
language plpgsql rows 10 as $$
begin
  return query select * from belfry.runs r
  where r.schedule = schedule_id and r.state < 'succeeded'
    and (r.waits_for = 'overlap' or r.engaged or r.ready_at <= now_ms)
  order by r.id;
end $$;

-- `unfinished_runs` as text. The planner gets this text, and the plan is written only if the text is still the same.
-- Null without runs.
create or replace function belfry.unfinished_text(schedule_id text, now_ms bigint) returns text language plpgsql as $$
begin
  return (
    select json_agg(json_build_array(r.state, r.attempt > 0, case when r.origin = 'tick' then r.tick end) order by r.id)::text
    from belfry.runs r
    where r.schedule = schedule_id and r.state < 'succeeded'
      and (r.waits_for = 'overlap' or r.engaged or r.ready_at <= now_ms));
end $$;

-- Ticks of schedules that were recorded and are not running. `origin < 'trigger'` means that the run is a tick. With
-- `=`, Postgres might use the index of ticks, which is in order of instant, and read the ticks of all schedules.
create or replace function belfry.idle_ticks(schedule_ids text[]) returns setof belfry.runs language plpgsql rows 10 as $$
begin
  return query select r.* from unnest(schedule_ids) s(id) cross join lateral (
    select * from belfry.runs where schedule = s.id and state < 'running' and origin < 'trigger' offset 0) r;
end $$;
