-- Takes back ticks that were recorded and have not started. The caller has locked the schedule and most of its runs.

-- Takes back ticks that were never claimed: deletes those in `to_forget`, and skips those in `to_skip`. If the
-- unclaimed ticks are no longer those that the caller decided upon, the operation is tried again. Returns the ticks'
-- keys.
create or replace function belfry.take_back(
  schedule_id text, unclaimed bigint[], to_forget bigint[], to_skip bigint[], why belfry.skip_reason, now_ms bigint
) returns text[] language plpgsql as $$
declare
  found_ids bigint[];
  keys text[];
begin
  perform belfry.take_runs(array(select t.id from belfry.idle_ticks(array[schedule_id]) t where t.attempt = 0));
  found_ids := array(select t.id from belfry.idle_ticks(array[schedule_id]) t where t.attempt = 0 order by t.id);
  if found_ids <> unclaimed then
    perform belfry.try_again('the schedule was changed meanwhile');
  end if;
  keys := array(select r.key from belfry.runs r where r.id = any (found_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  perform belfry.end_idle_runs(to_skip, 'skipped', why, now_ms);
  delete from belfry.runs r where r.id = any (to_forget);
  return keys;
end $$;

-- Ends recorded runs that are not running. The caller is further down the lock order, and has locked most of the runs
-- already; if another transaction has locked one, the operation is tried again. Returns the runs' keys.
create or replace function belfry.end_idle_runs(
  run_ids bigint[], final_state belfry.run_state, why belfry.skip_reason, now_ms bigint
) returns text[] language plpgsql as $$
declare
  keys text[];
  run belfry.runs;
begin
  perform belfry.take_runs(run_ids);
  keys := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  for run in select * from belfry.runs r where r.id = any (run_ids) and r.state < 'running' order by r.id loop
    perform belfry.end_run(run, final_state, now_ms, why);
  end loop;
  return keys;
end $$;
