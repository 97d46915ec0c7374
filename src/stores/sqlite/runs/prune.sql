-- statement: countEnded
-- How many runs have ended. They are counted only if there may be more than :enough.
select iif(most <= :enough, most, (select count(*) from belfry_runs where end_order is not null)) as runs from (
  select coalesce(
    (select max(end_order) from belfry_runs where end_order is not null)
    - (select min(end_order) from belfry_runs where end_order is not null) + 1, 0) as most);

-- statement: oldestEnded
select id, finished_at from belfry_runs where end_order is not null order by end_order limit :limit;

-- statement: forgetRuns
delete from belfry_runs where id in (select value from json_each(:runs));

-- statement: forgetSkips
delete from belfry_skips where place in (
  select place from (select place, recorded_at from belfry_skips order by place limit :limit)
  where recorded_at <= :until);

-- statement: finishedSchedules
-- Finished schedules that are to be removed and have no unfinished run.
select id from belfry_schedules s
where finished_at is not null and finished_at <= :until and on_finish = 'remove'
  and not exists (
    select 1 from belfry_runs r
    where r.schedule = s.id and r.finished_at is null and r.waits_for is not 'overlap'
      and (r.engaged = 1 or r.ready_at <= :now))
  and not exists (select 1 from belfry_runs r where r.schedule = s.id and r.waits_for = 'overlap')
order by finished_at limit :limit;

-- statement: expiredLocks
select name, holder from belfry_leases where expires_at <= :until order by expires_at limit :limit;

-- statement: forgetNames
delete from belfry_names where name in (
  select name from belfry_names where freed_at is not null and freed_at <= :until order by freed_at limit :limit);

-- statement: forgetDedupes
delete from belfry_dedupes where (target, dedupe) in (
  select target, dedupe from belfry_dedupes where until is not null and until <= :now order by until limit :limit);

-- statement: forgetRecords
delete from belfry_records where (kind, id) in (
  select kind, id from belfry_records where expires_at is not null and expires_at <= :now order by expires_at limit :limit);
