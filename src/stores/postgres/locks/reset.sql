-- Takes a lease from all its holders, for operators. A run that held it is fenced and taken over.
-- Locks: the name, the runs, their dedupe keys.
-- Reply lost: the caller decides.
create or replace function belfry.reset_lock(lock_name text, out count integer, out hints belfry.hint[])
language plpgsql as $$
declare
  now_us bigint;
  schedules text[] := array[]::text[];
  run_ids bigint[];
  lease belfry.leases;
  run belfry.runs;
begin
  perform belfry.durable();
  count := 0;
  hints := '{}';
  perform 1 from belfry.lock_names n where n.name = lock_name for update;
  if not found then
    return;
  end if;
  run_ids := array(select l.run from belfry.leases l where l.name = lock_name and l.run is not null);
  perform 1 from belfry.runs r where r.id = any (run_ids) order by r.id for update;
  perform belfry.lock_dedupes(run_ids);
  now_us := belfry.now_us();
  for lease in select * from belfry.leases l where l.name = lock_name order by l.token loop
    select * into run from belfry.runs r where r.id = lease.run;
    if found then
      perform belfry.take_over(run, now_us / 1000, false);
      schedules := schedules || run.schedule;
    end if;
    delete from belfry.leases l where l.name = lock_name and l.holder = lease.holder;
    count := count + 1;
  end loop;
  hints := array['runs', 'leases', 'attempts']::belfry.hint[]
    || belfry.pass_on(array[lock_name], schedules, now_us, 'wait');
end $$;
