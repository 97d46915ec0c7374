-- statement: nextDue
select due_at from belfry_schedules where due_at is not null order by due_at limit 1;

-- statement: dueSchedules
-- A schedule that is due again after its step gets a place behind :lineEnd, so that it is not taken twice.
select id, definition, anchor, cursor, remaining from belfry_schedules
where due_at <= :horizon and line <= :lineEnd order by due_at, line limit :limit;

-- statement: recordTicks
-- Inserts a run for each tick, with the target, payload and policies of its schedule, in the order of the list, because ids
-- grow in it. A tick that is recorded already stays as it is.
insert into belfry_runs (state, waits_for, target, options, origin, schedule, tick, payload, priority, keep, key, key_limit,
  key_when_busy, unstamped, created_at, ready_at, start_by, by_deadline, engaged)
select
  iif(given.value ->> 'waits' or s.unstamped, 'waiting', 'ready'),
  case when given.value ->> 'waits' then 'overlap' when s.unstamped then 'stamp' end,
  s.target, s.options, 'tick', s.id, given.value ->> 'tick', s.payload, s.priority, s.keep, s.key, s.key_limit,
  s.key_when_busy, s.unstamped, :now, given.value ->> 'readyAt', given.value ->> 'startBy',
  given.value ->> 'byDeadline', 1
from json_each(:ticks) as given cross join belfry_schedules s on s.id = given.value ->> 'schedule'
where true order by given.key
on conflict do nothing;

-- statement: moveCursors
update belfry_schedules
set cursor = given.value ->> 'cursor', remaining = given.value ->> 'remaining', next_at = given.value ->> 'nextAt',
  due_at = given.value ->> 'dueAt', line = :line + given.key,
  finished_at = iif(given.value ->> 'nextAt' is null, :now, null)
from json_each(:moves) as given
where belfry_schedules.id = given.value ->> 'schedule';
