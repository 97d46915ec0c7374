-- Views for people: instants as timestamps, payloads as JSON. Of these, operations read only `lease_times` and
-- `waited_for`.

create view belfry.run as
select belfry.run_id(id, mark) as id, target, origin, state, nullif(waits_for, 'nothing') as waits_for, reason, schedule,
  to_timestamp(tick / 1000.0) as tick, payload::json as payload, priority, key, dedupe,
  to_timestamp(created_at / 1000.0) as created_at, to_timestamp(ready_at / 1000.0) as ready_at,
  to_timestamp(started_at / 1000.0) as started_at, to_timestamp(finished_at / 1000.0) as finished_at,
  attempt, failures, takeovers, token, instance, cancel_requested, result::json as result, error::json as error
from belfry.runs;

create view belfry.schedule as
select s.id, s.version,
  case when s.finished_at is not null then 'finished' when s.paused_at is not null then 'paused' else 'active' end as state,
  d.target, d.app, to_timestamp(s.next_at / 1000.0) as next_at, to_timestamp(s.due_at / 1000.0) as due_at,
  to_timestamp(s.cursor / 1000.0) as recorded_through, s.remaining, to_timestamp(s.paused_at / 1000.0) as paused_at,
  s.pause_note::json #>> '{}' as pause_note, to_timestamp(s.created_at / 1000.0) as created_at,
  to_timestamp(s.updated_at / 1000.0) as updated_at, to_timestamp(s.finished_at / 1000.0) as finished_at,
  d.body::json as definition, d.payload::json as payload
from belfry.schedules s join belfry.definitions d on d.id = s.definition;

create view belfry.instance as
select id, app, to_timestamp(joined_at / 1000.0) as joined_at, to_timestamp(beat_at / 1000.0) as beat_at,
  to_timestamp(expires_at / 1000.0) as expires_at, dead, info::json as info
from belfry.instances;

-- When each lease expires. `expires_at` is the instant that its holder was told. `counts_until` is the instant that
-- other callers go by: 0 if the holder's session has provably ended. A lease that was released before its minimum hold
-- counts until `expires_at` in any case.
create view belfry.lease_times as
select name, holder, token, acquired_at, instance, released, expires_at,
  (select belfry.run_id(r.id, r.mark) from belfry.runs r where r.id = run) as run,
  case when belfry.session_is_gone(session) then 0 else expires_at end as counts_until
from (
  select l.name, l.holder, l.token, l.acquired_at, l.instance, l.run, l.released,
    case when l.run is null then l.expires_at else coalesce(i.expires_at, 0) end as expires_at,
    case when not l.released then coalesce(l.proof, i.proof) end as session
  from belfry.leases l left join belfry.instances i on l.run is not null and i.id = l.instance
) lease;

create view belfry.lock as
select name, holder, token, to_timestamp(acquired_at / 1000.0) as acquired_at,
  to_timestamp(expires_at / 1000.0) as expires_at, instance, run, released,
  (select count(*) from belfry.waiters w where w.name = l.name) as waiting
from belfry.lease_times l;

-- The names of locks and keys that have waiters: callers that wait for a lock, or runs that wait for their key.
create view belfry.waited_for as
select name from belfry.waiters
union all
select case when waits_for = 'key' then key else schedule end from belfry.runs
where state = 'waiting' and waits_for = 'key';
