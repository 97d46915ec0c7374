-- The only place where a run changes its state. Each function expects the caller to have locked the run's row and, if
-- the run may end, its dedupe key.
--
--     waiting ⇄ ready → running → succeeded | failed | cancelled
--     waiting | ready → skipped | cancelled
--     running → ready                        retry, takeover, release at stop
--     running → failed                       also as LOST: too many of its instances died with it
--     failed | cancelled | skipped → ready   retried by hand

-- Makes a waiting run ready, so that claims find it. A run that has no stamp yet waits for that next.
create or replace function belfry.make_ready(run belfry.runs) returns void language plpgsql as $$
begin
  update belfry.runs r
  set state = case when r.unstamped then 'waiting' else 'ready' end::belfry.run_state,
    waits_for = case when r.unstamped then 'stamp' else 'nothing' end::belfry.wait_reason,
    engaged = r.engaged or r.attempt > 0 or r.unstamped
  where r.id = run.id;
end $$;

create or replace function belfry.wait_for_key(run_ids bigint[]) returns void language plpgsql as $$
begin
  update belfry.runs r set state = 'waiting', waits_for = 'key', engaged = true where r.id = any (run_ids);
end $$;

-- Starts runs. Each gets a token that is higher than its last one, and at least `least_token` and the time in
-- microseconds.
create or replace function belfry.start_runs(
  run_ids bigint[], instance_id text, claim_number bigint, least_token bigint, now_us bigint
) returns void language plpgsql as $$
begin
  update belfry.runs r
  set state = 'running', attempt = r.attempt + 1, takeovers = r.takeovers + r.taken_over::integer, taken_over = false,
    token = greatest(coalesce(r.token, 0) + 1, now_us, least_token), started_at = now_us / 1000,
    instance = instance_id, claim = claim_number
  where r.id = any (run_ids);
end $$;

-- Ends a run: frees its key and its dedupe key, and keeps or deletes its row. If the row of a skipped tick is deleted,
-- a row of `skips` records the skip instead. `failures` and `settled_token` are written as they are in `run`.
create or replace function belfry.end_run(
  run belfry.runs, final_state belfry.run_state, now_ms bigint, why belfry.skip_reason default null,
  error_text text default null, result_text text default null
) returns void language plpgsql as $$
begin
  if run.key is not null and run.state = 'running' then
    delete from belfry.leases l where l.run = run.id;
  end if;
  if run.dedupe is not null then
    if coalesce(run.dedupe_ms, 0) <= 0 then
      delete from belfry.dedupes d where d.target = run.target and d.dedupe = run.dedupe and d.run = run.id;
    else
      update belfry.dedupes d set until = now_ms + run.dedupe_ms
      where d.target = run.target and d.dedupe = run.dedupe and d.run = run.id;
    end if;
  end if;
  if run.keep = 'all' or (run.keep = 'failures' and final_state <> 'succeeded') then
    update belfry.runs r
    set state = final_state, waits_for = 'nothing', finished_at = now_ms, ended = nextval('belfry.endings'), reason = why,
      error = error_text, result = result_text, failures = run.failures, settled_token = run.settled_token
    where r.id = run.id;
  else
    if why is not null and run.origin = 'tick' and run.schedule is not null then
      insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
      values (run.schedule, run.tick, run.tick, 1, why, now_ms);
    end if;
    delete from belfry.runs r where r.id = run.id;
  end if;
end $$;

-- `end_run` for many runs at once, if they succeed, have no key and no dedupe key, and are still running with the given
-- token. Returns the positions of the settlements that it applied, and the runs' schedules. With a loop over runs, `npm
-- run bench -- runs` drains only a fraction as many.
--
-- The settlements are sorted by run, so `width_bucket`, a binary search, finds the one of each run. The state is
-- compared as text, so that Postgres finds the runs by their ids, and not by the index of running runs.
create or replace function belfry.succeed_runs(
  settlements belfry.settlement[], now_ms bigint, out settled integer[], out schedules text[]
) language plpgsql as $$
declare
  run_ids bigint[] := array(select s.run from unnest(settlements) s where s.kind = 'succeeded');
  tokens bigint[] := array(select s.token from unnest(settlements) s where s.kind = 'succeeded');
  results text[] := array(select s.result from unnest(settlements) s where s.kind = 'succeeded');
  ended bigint[];
begin
  with kept as (
    update belfry.runs r
    set state = 'succeeded', finished_at = now_ms, ended = nextval('belfry.endings'), reason = null, error = null,
      result = case when r.settled_token = r.token then r.result else results[width_bucket(r.id, run_ids)] end,
      settled_token = r.token
    where r.id = any (run_ids) and r.state::text = 'running' and r.token = tokens[width_bucket(r.id, run_ids)]
      and r.key is null and r.dedupe is null and r.keep = 'all'
    returning r.id, r.schedule
  ), forgotten as (
    delete from belfry.runs r
    where r.id = any (run_ids) and r.state::text = 'running' and r.token = tokens[width_bucket(r.id, run_ids)]
      and r.key is null and r.dedupe is null and r.keep <> 'all'
    returning r.id, r.schedule
  ), gone as (
    select * from kept union all select * from forgotten
  )
  select array_agg(g.id order by g.id), array_agg(distinct g.schedule) filter (where g.schedule is not null)
  into ended, schedules from gone g;
  settled := array(
    select s.ordinality::integer from unnest(settlements) with ordinality s
    where s.kind = 'succeeded' and ended[width_bucket(s.run, ended)] = s.run
      and tokens[width_bucket(s.run, run_ids)] = s.token);
end $$;

-- Makes a running run ready again at an instant, now or later.
create or replace function belfry.give_back(run belfry.runs, ready_again_at bigint) returns void language plpgsql as $$
begin
  if run.key is not null then
    delete from belfry.leases l where l.run = run.id;
  end if;
  update belfry.runs r
  set state = 'ready', waits_for = 'nothing', ready_at = ready_again_at, engaged = true, taken_over = run.taken_over,
    failures = run.failures, error = run.error, settled_token = run.settled_token
  where r.id = run.id;
end $$;

-- Whether the transaction of the run's handler has committed. If so, the run has succeeded, however its attempt ends.
create or replace function belfry.has_committed(run belfry.runs) returns boolean language sql immutable
  as $$ select run.state = 'running' and run.settled_token is not distinct from run.token $$;

-- Takes a run from its instance: the attempt's token can no longer settle it, and another instance can claim it. With
-- `instance_died` this counts as a takeover. Returns 'ready', 'ended', or 'lost' if too many instances have died with
-- the run.
create or replace function belfry.take_over(run belfry.runs, now_ms bigint, instance_died boolean) returns text
language plpgsql as $$
declare
  -- As `MAX_TAKEOVERS` in core/runs/run.ts. The message is that of core/runs/lost-message.ts.
  max_takeovers constant integer := 3;
begin
  if belfry.has_committed(run) then
    perform belfry.end_run(run, 'succeeded', now_ms, null, null, run.result);
    return 'ended';
  end if;
  if run.cancel_requested then
    perform belfry.end_run(run, 'cancelled', now_ms);
    return 'ended';
  end if;
  if instance_died and run.takeovers >= max_takeovers then
    perform belfry.end_run(run, 'failed', now_ms, null, json_build_object('code', 'LOST', 'message',
      format('its instance stopped beating: killed, frozen, or its event loop was blocked. That happened %s times, last on instance %s: see docs/cpu-bound-jobs.md',
        run.takeovers + 1, run.instance))::text);
    return 'lost';
  end if;
  run.taken_over := instance_died;
  perform belfry.give_back(run, now_ms);
  return 'ready';
end $$;

-- Makes a failed, cancelled or skipped run ready again. Its failures and takeovers count from 0.
create or replace function belfry.make_ready_again(run belfry.runs, now_ms bigint) returns void language plpgsql as $$
begin
  update belfry.runs r
  set state = case when r.unstamped then 'waiting' else 'ready' end::belfry.run_state,
    waits_for = case when r.unstamped then 'stamp' else 'nothing' end::belfry.wait_reason,
    engaged = true, ended = null, finished_at = null, reason = null, error = null, result = null, start_by = null,
    cancel_requested = false, taken_over = false, failures = 0, takeovers = 0, ready_at = now_ms
  where r.id = run.id;
end $$;

-- Gives a run its key. If the run waited only for that, it becomes ready.
create or replace function belfry.stamp_run(given belfry.stamp) returns void language plpgsql as $$
begin
  update belfry.runs r
  set unstamped = false, key = given.key, key_limit = given.key_limit, key_when_busy = given.key_when_busy,
    state = case when r.waits_for = 'stamp' then 'ready' else r.state end,
    waits_for = case when r.waits_for = 'stamp' then 'nothing' else r.waits_for end
  where r.id = given.run;
end $$;

-- Makes way for a new run of a schedule: its running runs are asked to cancel, those between two attempts are
-- cancelled, and those that never began are skipped. The caller has locked most of them already; if another transaction
-- has locked one that appeared since, the operation is tried again.
create or replace function belfry.make_way(
  schedule_id text, now_ms bigint, out keys text[], out hints belfry.hint[]
) language plpgsql as $$
declare
  run_ids bigint[] := array(select r.id from belfry.unfinished_runs(schedule_id, now_ms) r);
  run belfry.runs;
begin
  hints := '{}';
  perform belfry.take_runs(run_ids);
  keys := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  perform belfry.lock_names(keys, true);
  perform belfry.take_dedupes(run_ids);
  for run in select * from belfry.runs r where r.id = any (run_ids) and r.state < 'succeeded' order by r.id loop
    if run.state = 'running' then
      update belfry.runs r set cancel_requested = true where r.id = run.id;
      hints := hints || 'attempts'::belfry.hint;
    elsif run.attempt > 0 then
      perform belfry.end_run(run, 'cancelled', now_ms);
      hints := hints || 'settled'::belfry.hint;
    else
      perform belfry.end_run(run, 'skipped', now_ms, 'overlap');
      hints := hints || 'settled'::belfry.hint;
    end if;
  end loop;
end $$;

-- Takes attempts over from an instance that no longer has them. They were selected before their keys were locked, so a
-- run may have ended or been started elsewhere since: its state or its token then differs, and it is left alone.
-- Locks: the keys by name, the runs by id, their dedupe keys.
create or replace function belfry.take_over_attempts(
  attempts belfry.attempt[], instance_died boolean, now_us bigint,
  out rescued integer, out lost integer, out hints belfry.hint[]
) language plpgsql as $$
declare
  run_ids bigint[] := array(select a.run from unnest(attempts) a);
  keys text[] := array(select r.key from belfry.runs r where r.id = any (run_ids) and r.key is not null);
  schedules text[] := array[]::text[];
  run belfry.runs;
begin
  rescued := 0;
  lost := 0;
  hints := '{}';
  if cardinality(run_ids) = 0 then
    return;
  end if;
  perform belfry.lock_names(keys);
  perform 1 from belfry.runs r where r.id = any (run_ids) and r.state::text = 'running' order by r.id for update;
  perform belfry.lock_dedupes(run_ids);
  for run in
    select r.* from unnest(attempts) a cross join lateral (
      select * from belfry.runs u where u.id = a.run limit 1) r
    where r.state = 'running' and r.token = a.token order by r.id
  loop
    if belfry.take_over(run, now_us / 1000, instance_died) = 'lost' then
      lost := lost + 1;
    else
      rescued := rescued + 1;
    end if;
    schedules := schedules || run.schedule;
  end loop;
  if rescued + lost > 0 then
    hints := array['runs', 'leases', 'settled']::belfry.hint[];
  end if;
  hints := hints || belfry.pass_on(keys, schedules, now_us, 'wait');
end $$;
