-- statement: readyGroups
-- The priorities of each target that have ready runs, with the first instant: a look for each, however many runs there are.
with recursive groups (target, priority) as (
  select value, (select max(priority) from belfry_runs where state = 'ready' and target = value) from json_each(:targets)
  union all
  select target, (
    select max(r.priority) from belfry_runs r
    where r.state = 'ready' and r.target = groups.target and r.priority < groups.priority)
  from groups where priority is not null
)
select target, priority, (
  select min(r.ready_at) from belfry_runs r
  where r.state = 'ready' and r.target = groups.target and r.priority = groups.priority) as first_at
from groups where priority is not null;

-- statement: nextAfter
-- The first instant of a group that is still ahead.
select min(ready_at) as at from belfry_runs
where state = 'ready' and target = :target and priority = :priority and ready_at > :now;

-- statement: dueRuns
-- The first due runs of a group, in the order of claiming.
select id, target, ready_at, start_by, attempt, key, key_limit, key_when_busy from belfry_runs
where state = 'ready' and target = :target and priority = :priority and ready_at <= :now
order by ready_at, id limit :limit;

-- statement: claimStatus
-- A claim is a repetition when its runs run, or when the instance counts on no answer any more.
select
  expires_at, dead,
  exists (select 1 from belfry_settings where name = 'frozen') as frozen,
  claims_settled >= :claim or exists (
    select 1 from belfry_runs where state = 'running' and instance = :instance and claim = :claim) as repeated
from belfry_instances where id = :instance;
