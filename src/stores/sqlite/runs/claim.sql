-- statement: readyGroups
-- The priorities of each target that have ready runs, with the first instant: a lookup for each, however many runs there are.
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
select id, target, ready_at, start_by, attempt, key, key_limit from belfry_runs
where state = 'ready' and target = :target and priority = :priority and ready_at <= :now
order by ready_at, id limit :limit;

-- statement: claimStatus
-- A claim is repeated when runs that it started still run, or when the instance has reported its number as settled.
select
  expires_at, dead,
  exists (select 1 from belfry_settings where name = 'frozen') as frozen,
  claims_settled >= :claim or exists (
    select 1 from belfry_runs where state = 'running' and instance = :instance and claim = :claim) as repeated
from belfry_instances where id = :instance;

-- statement: startedBy
-- What a claim has started and still runs, as one JSON text: drivers take twice as long to read rows with so many columns.
select json_group_array(json_object(
  'id', id, 'mark', mark, 'state', state, 'waits_for', waits_for, 'reason', reason, 'target', target, 'options', options,
  'origin', origin, 'schedule', schedule, 'tick', tick, 'backfill', backfill, 'payload', payload,
  'priority', priority, 'keep', keep, 'key', key, 'key_limit', key_limit, 'key_when_busy', key_when_busy,
  'unstamped', unstamped, 'dedupe', dedupe, 'dedupe_ms', dedupe_ms, 'created_at', created_at, 'ready_at', ready_at,
  'start_by', start_by, 'attempt', attempt, 'failures', failures, 'takeovers', takeovers, 'token', token,
  'instance', instance, 'claim', claim, 'started_at', started_at, 'cancel_requested', cancel_requested,
  'committed', committed, 'settled_token', settled_token, 'finished_at', finished_at, 'result', result, 'error', error
)) as runs
from belfry_runs where state = 'running' and instance = :instance and claim = :claim;
