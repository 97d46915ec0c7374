-- Locking runs and dedupe keys: lines 4 to 6 of the order in `locks/lock-names.sql`.

-- Locks runs that wait for no other run of their schedule. A run with a key is locked only if its key is among `keys`,
-- whose names the caller has locked.
create or replace function belfry.lock_runs(wanted bigint[], keys text[]) returns void language plpgsql as $$
begin
  perform 1 from belfry.runs r
  where r.id = any (wanted) and r.waits_for <> 'overlap' and (r.key is null or r.key = any (keys))
  order by r.id for update;
end $$;

-- Locks runs that wait for others of their schedule. A caller that does this may wait for nothing else afterwards.
create or replace function belfry.lock_overlap_waiters(schedule_ids text[]) returns void language plpgsql as $$
begin
  perform 1 from belfry.runs r
  where r.schedule = any (schedule_ids) and r.state < 'succeeded' and r.waits_for = 'overlap'
  order by r.schedule, r.id for update;
end $$;

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
