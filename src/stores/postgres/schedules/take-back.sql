-- Taking back ticks that were recorded and are not running. The schedule is locked, and most of the runs are.

-- Takes ticks back that were never claimed: some as if they had never been recorded, some as skipped. They must be those
-- that the caller decided upon. Returns their keys.
create or replace function belfry.take_back(
  schedule_id text, unclaimed bigint[], to_forget bigint[], to_skip bigint[], why belfry.skip_reason, now_ms bigint
) returns text[] language plpgsql as $$
declare
  found_ids bigint[];
  keys text[];
  run belfry.runs;
begin
  perform belfry.take_runs(array(select t.id from belfry.idle_ticks(array[schedule_id]) t where t.attempt = 0));
  found_ids := array(select t.id from belfry.idle_ticks(array[schedule_id]) t where t.attempt = 0 order by t.id);
  if found_ids <> unclaimed then
    perform belfry.try_again('the schedule was changed meanwhile');
  end if;
  keys := array(select r.key from belfry.runs r where r.id = any (found_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  for run in select * from belfry.runs r where r.id = any (to_skip) order by r.id loop
    perform belfry.end_run(run, 'skipped', now_ms, why);
  end loop;
  delete from belfry.runs r where r.id = any (to_forget);
  return keys;
end $$;

-- Cancels a removed schedule's ticks that are between attempts. Runs that go on by themselves are not touched. Returns
-- their keys.
create or replace function belfry.cancel_ticks(schedule_id text, now_ms bigint) returns text[] language plpgsql as $$
declare
  run_ids bigint[] := array(select t.id from belfry.idle_ticks(array[schedule_id]) t where t.attempt > 0 order by t.id);
  keys text[];
  run belfry.runs;
begin
  perform belfry.take_runs(run_ids);
  keys := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  for run in select * from belfry.runs r where r.id = any (run_ids) and r.state < 'running' order by r.id loop
    perform belfry.end_run(run, 'cancelled', now_ms);
  end loop;
  return keys;
end $$;

-- Takes older ticks back that never began, under a policy that drops what was missed. Returns the schedules' keys.
create or replace function belfry.take_back_missed(progress belfry.schedule_progress[], now_ms bigint) returns text[]
language plpgsql as $$
declare
  run_ids bigint[] := array(
    select t.id from unnest(progress) p cross join lateral belfry.idle_ticks(array[p.schedule]) t
    where p.retract_through is not null and t.attempt = 0 and t.tick <= p.retract_through
    order by t.id);
  keys text[];
  run belfry.runs;
begin
  perform belfry.take_runs(run_ids);
  keys := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  for run in select * from belfry.runs r where r.id = any (run_ids) and r.state < 'running' order by r.id loop
    perform belfry.end_run(run, 'skipped', now_ms, 'missed');
  end loop;
  return keys;
end $$;
