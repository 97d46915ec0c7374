-- Locks runs, dedupe keys and overlap queues: lines 4 to 6 of the lock order in `locks/lock-names.sql`.

-- Locks runs, except those that wait for others of their schedule. A run with a key is locked only if the key is among
-- `keys`, whose names the caller has locked.
create or replace function belfry.lock_runs(wanted bigint[], keys text[]) returns void language plpgsql as $$
begin
  perform 1 from belfry.runs r
  where r.id = any (wanted) and r.waits_for <> 'overlap' and (r.key is null or r.key = any (keys))
  order by r.id for update;
end $$;

-- Locks the overlap queues of schedules: their runs that wait for others of the same schedule. Afterwards the caller
-- may wait only for locks of line 7. Each queue has one advisory lock, instead of a lock on each run's row, because a
-- run leaves the queue when it becomes ready. Its row then belongs to line 4 of the lock order, so waiting for it here
-- would be out of order.
create or replace function belfry.lock_overlap_queues(schedule_ids text[]) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock('belfry.runs'::regclass::oid::integer, queue.number)
  from (
    select distinct belfry.overlap_queue(s.id) as number
    from unnest(schedule_ids) s(id)
    cross join lateral (
      select 1 from belfry.runs r where r.schedule = s.id and r.state < 'succeeded' and r.waits_for = 'overlap' limit 1) any_run
    order by number) queue;
end $$;

create or replace function belfry.try_overlap_queue(schedule_id text) returns boolean language plpgsql as $$
begin
  return pg_try_advisory_xact_lock('belfry.runs'::regclass::oid::integer, belfry.overlap_queue(schedule_id));
end $$;

-- All schedules share 128 advisory locks, because the server's memory limits how many there can be.
create or replace function belfry.overlap_queue(schedule_id text) returns integer immutable
  return hashtext(schedule_id) & 127;

-- Locks runs for a caller that is further down the lock order, and has locked most of them already. It does not wait:
-- if another transaction has locked a run that appeared since, the operation is tried again.
create or replace function belfry.take_runs(wanted bigint[]) returns void language plpgsql as $$
declare
  locked integer;
begin
  select count(*) into locked
  from (select 1 from belfry.runs r where r.id = any (wanted) order by r.id for update skip locked) each_run;
  if locked < (select count(*) from belfry.runs r where r.id = any (wanted)) then
    perform belfry.try_again('a run came in between');
  end if;
end $$;

-- Locks the dedupe keys of runs that may end. The caller has locked the runs.
create or replace function belfry.lock_dedupes(run_ids bigint[]) returns void language plpgsql as $$
declare
  owner record;
begin
  for owner in
    select distinct r.target, r.dedupe from belfry.runs r where r.id = any (run_ids) and r.dedupe is not null
    order by r.target, r.dedupe
  loop
    perform 1 from belfry.dedupes d where d.target = owner.target and d.dedupe = owner.dedupe for update;
  end loop;
end $$;

-- `lock_dedupes` for a caller that is further down the lock order: if another transaction has locked a key, the
-- operation is tried again.
create or replace function belfry.take_dedupes(run_ids bigint[]) returns void language plpgsql as $$
declare
  run belfry.runs;
begin
  for run in select * from belfry.runs r where r.id = any (run_ids) and r.dedupe is not null loop
    if not belfry.try_dedupe(run) then
      perform belfry.try_again('a dedupe key came in between');
    end if;
  end loop;
end $$;

-- Locks a run's dedupe key. False if another transaction has locked it; true if the run has no dedupe key.
create or replace function belfry.try_dedupe(run belfry.runs) returns boolean language plpgsql as $$
begin
  if run.dedupe is null then
    return true;
  end if;
  perform 1 from belfry.dedupes d where d.target = run.target and d.dedupe = run.dedupe for update skip locked;
  return found or not exists (select 1 from belfry.dedupes d where d.target = run.target and d.dedupe = run.dedupe);
end $$;
