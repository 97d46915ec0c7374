-- Gives runs that wait for a stamp their key, or none. Locks: the keys' names if they are new, the runs: first by id, then
-- those that wait for others of their schedule, by schedule.
create or replace function belfry.stamp_runs(stamps belfry.stamp[]) returns void language plpgsql as $$
declare
  given record;
begin
  perform belfry.durable();
  perform belfry.make_names(array(select s.key from unnest(stamps) s));
  for given in
    select s as stamp, r.waits
    from unnest(stamps) s
    cross join lateral (select waits_for = 'overlap' as waits, schedule from belfry.runs where id = s.run and mark = s.mark limit 1) r
    order by r.waits, case when r.waits then r.schedule end, s.run
  loop
    perform 1 from belfry.runs r
    where r.id = (given.stamp).run and r.unstamped and r.state < 'succeeded' and (r.waits_for = 'overlap') = given.waits
    for update;
    if found then
      perform belfry.stamp_run(given.stamp);
    elsif exists (
      select 1 from belfry.runs r where r.id = (given.stamp).run and r.unstamped and r.state < 'succeeded')
    then
      perform belfry.try_again('a run became ready meanwhile');
    end if;
  end loop;
end $$;
