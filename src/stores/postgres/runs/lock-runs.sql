-- Locking runs, dedupe keys and queues of schedules: lines 4 to 6 of the order in `locks/lock-names.sql`.

-- Locks runs that wait for no other run of their schedule. A run with a key is locked only if its key is among `keys`,
-- whose names the caller has locked.
create or replace function belfry.lock_runs(wanted bigint[], keys text[]) returns void language plpgsql as $$
begin
  perform 1 from belfry.runs r
  where r.id = any (wanted) and r.waits_for <> 'overlap' and (r.key is null or r.key = any (keys))
  order by r.id for update;
end $$;

-- Locks the queues of schedules: the runs that wait there for others of their schedule. A caller that does this may wait
-- for nothing else afterwards. The lock is one of a queue and not of its runs, because a run leaves it when it becomes
-- ready: a transaction that waited for the run's row would then wait for the next one that locks it as line 4.
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

-- Schedules share 128 locks, because the server's memory limits their number.
create or replace function belfry.overlap_queue(schedule_id text) returns integer immutable
  return hashtext(schedule_id) & 127;

-- Locks runs out of turn: they are locked already, but for those that came in between.
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

-- Locks the dedupe keys of runs that may end. The runs are locked already.
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

-- The same out of turn.
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

-- Locks a run's dedupe key, if it has one and no other transaction has it locked.
create or replace function belfry.try_dedupe(run belfry.runs) returns boolean language plpgsql as $$
begin
  if run.dedupe is null then
    return true;
  end if;
  perform 1 from belfry.dedupes d where d.target = run.target and d.dedupe = run.dedupe for update skip locked;
  return found or not exists (select 1 from belfry.dedupes d where d.target = run.target and d.dedupe = run.dedupe);
end $$;
