-- statement: claimStatus
-- A claim is repeated when runs that it started still run, or when the instance has reported its number as settled.
select
  dead = 0 and expires_at > :now and not exists (select 1 from belfry_settings where name = 'frozen') as may_start,
  claims_settled >= :claim or exists (
    select 1 from belfry_runs where state = 'running' and instance = :instance and claim = :claim) as repeated
from belfry_instances where id = :instance;

-- statement: outlook
-- Whether a run of some targets is due, and when the next one becomes due.
select max(first_at <= :now) as is_due, min(iif(first_at > :now, first_at, (
  select min(ready_at) from belfry_runs r
  where r.state = 'ready' and r.target = q.target and r.priority = q.priority and r.ready_at > :now))) as next_at
from belfry_queues q where target in (select value from json_each(:targets));

-- statement: dueRuns
-- The first due runs of some targets, in the order of claiming. Each queue is read only as far as it may matter.
select r.id, r.target, r.start_by, r.attempt, r.key, r.key_limit
from belfry_queues q cross join belfry_runs r on r.id in (
  select id from belfry_runs
  where state = 'ready' and target = q.target and priority = q.priority and ready_at <= :now
  order by ready_at, id limit :limit)
where q.first_at <= :now and q.target in (select value from json_each(:targets))
order by r.priority desc, r.ready_at, r.id limit :limit;

-- statement: startedBy
-- What a claim has started and still runs.
select * from belfry_runs where state = 'running' and instance = :instance and claim = :claim;
