-- Gives runs that wait for a stamp their key, or none if the job is not exclusive.
-- Locks: the names of new keys; the runs by id; the overlap queues of runs that wait for others of their schedule.
create or replace function belfry.stamp_runs(stamps belfry.stamp[]) returns void language plpgsql as $$
declare
  run_ids bigint[] := array(
    select r.id from unnest(stamps) s cross join lateral (
      select id, state, unstamped from belfry.runs where id = s.run and mark = s.mark limit 1) r
    where r.unstamped and r.state < 'succeeded');
  stamp belfry.stamp;
begin
  perform belfry.durable();
  perform belfry.make_names(array(select s.key from unnest(stamps) s));
  perform belfry.lock_runs(run_ids, '{}');
  perform belfry.lock_overlap_queues(array(
    select r.schedule from belfry.runs r where r.id = any (run_ids) and r.waits_for = 'overlap'));
  perform belfry.take_runs(run_ids);
  foreach stamp in array stamps loop
    if exists (
      select 1 from belfry.runs r
      where r.id = stamp.run and r.mark = stamp.mark and r.unstamped and r.state < 'succeeded' and r.id = any (run_ids))
    then
      perform belfry.stamp_run(stamp);
    end if;
  end loop;
end $$;
