-- Holders with the instant at which they expire: a run's key expires with the instance that runs it. Belfry reads this one and
-- the next one itself; the others are for people who look into the file.
create view belfry_holders as
select
  l.place, l.name, l.holder, l.token, l.run, l.instance, l.acquired_at, l.released,
  case when l.run is null then l.expires_at else coalesce(i.expires_at, 0) end as expires_at,
  (select r.mark from belfry_runs r where r.id = l.run) as run_mark
from belfry_leases l left join belfry_instances i on l.run is not null and i.id = l.instance;

-- The ready runs by target and priority, with the first instant of each. Every lookup goes from one queue of the index to the
-- next, however many runs there are.
create view belfry_queues as
with recursive queues (target, priority, first_at) as (
  select * from (
    select target, priority, ready_at from belfry_runs where state = 'ready' order by target, priority, ready_at limit 1)
  union all
  select r.target, r.priority, r.ready_at
  from queues q cross join belfry_runs r on r.id = coalesce(
    (select id from belfry_runs where state = 'ready' and target = q.target and priority > q.priority
      order by priority, ready_at limit 1),
    (select id from belfry_runs where state = 'ready' and target > q.target
      order by target, priority, ready_at limit 1))
)
select target, priority, first_at from queues;

create view belfry_run as
select
  id || '-' || mark as id,
  state,
  coalesce(waits_for, reason) as because,
  target,
  schedule,
  origin,
  strftime('%Y-%m-%dT%H:%M:%fZ', tick / 1000.0, 'unixepoch') as tick,
  json(payload) as payload,
  priority,
  key,
  attempt,
  failures,
  takeovers,
  token,
  instance,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') as created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', ready_at / 1000.0, 'unixepoch') as ready_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') as started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') as finished_at,
  json(result) as result,
  json(error) as error
from belfry_runs;

create view belfry_schedule as
select
  id,
  case when finished_at is not null then 'finished' when paused_at is not null then 'paused' else 'active' end as state,
  version,
  target,
  app,
  json(definition ->> 'timeline') as timeline,
  definition ->> 'overlap' as overlap,
  json(payload) as payload,
  key,
  strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1000.0, 'unixepoch') as next_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', cursor / 1000.0, 'unixepoch') as recorded_through,
  remaining,
  strftime('%Y-%m-%dT%H:%M:%fZ', paused_at / 1000.0, 'unixepoch') as paused_at,
  pause_note,
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') as finished_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch') as updated_at
from belfry_schedules;

-- Who holds what, and who waits for it.
create view belfry_lock as
select
  name,
  case when released then 'released' when expires_at > unixepoch('subsec') * 1000 then 'held' else 'expired' end as state,
  holder,
  token,
  run || '-' || run_mark as run,
  instance,
  strftime('%Y-%m-%dT%H:%M:%fZ', acquired_at / 1000.0, 'unixepoch') as acquired_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1000.0, 'unixepoch') as expires_at
from belfry_holders
union all
select name, 'waits', holder, null, null, instance, null,
  strftime('%Y-%m-%dT%H:%M:%fZ', until / 1000.0, 'unixepoch')
from belfry_waiters;

create view belfry_instance as
select
  id,
  case when dead then 'dead' when expires_at > unixepoch('subsec') * 1000 then 'alive' else 'expired' end as state,
  app,
  info ->> 'release' as release,
  info ->> 'host' as host,
  info ->> 'pid' as pid,
  strftime('%Y-%m-%dT%H:%M:%fZ', joined_at / 1000.0, 'unixepoch') as joined_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', beat_at / 1000.0, 'unixepoch') as beat_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1000.0, 'unixepoch') as expires_at
from belfry_instances;
