-- statement: expiredInstances
select id from belfry_instances where expires_at <= :now order by place;

-- statement: declareDead
update belfry_instances set dead = 1 where id = :instance and expires_at <= :now;

-- statement: namesWithWaiters
-- The names that a lock or a run waits for: each lookup goes from one name of the indexes to the next.
with recursive blocked (name) as (
  select min(name) from (
    select (select min(name) from belfry_waiters where name > :after) as name
    union all select (select min(key) from belfry_runs where key > :after and state = 'waiting'))
  union all
  select (select min(name) from (
    select (select min(w.name) from belfry_waiters w where w.name > blocked.name) as name
    union all select (select min(r.key) from belfry_runs r where r.key > blocked.name and r.state = 'waiting')))
  from blocked where name is not null
)
select name from blocked where name is not null limit :limit;

-- statement: schedulesWithWaiters
-- The schedules with a run that waits for the others, found in the same way.
with recursive schedules (schedule) as (
  select min(schedule) from belfry_runs where waits_for = 'overlap' and schedule > :after
  union all
  select (
    select min(r.schedule) from belfry_runs r where r.waits_for = 'overlap' and r.schedule > schedules.schedule)
  from schedules where schedule is not null
)
select schedule as name from schedules where schedule is not null limit :limit;
