-- statement: insertRun
insert into belfry_runs (mark, state, waits_for, target, options, origin, schedule, tick, backfill, payload, priority, keep,
  key, key_limit, key_when_busy, unstamped, dedupe, dedupe_ms, created_at, ready_at, engaged)
values (:mark, :state, :waitsFor, :target, :options, :origin, :schedule, :tick, :backfill, :payload, :priority, :keep,
  :key, :key_limit, :key_when_busy, :unstamped, :dedupe, :dedupeMs, :now, :readyAt, :engaged)
returning id;

-- statement: sameBackfill
select id, mark from belfry_runs where schedule = :schedule and tick = :tick and origin = 'backfill' and backfill = :backfill;

-- statement: sameInstant
-- A run of the key that has not begun and becomes ready at that instant.
select id, mark from belfry_runs
where key = :key and state = 'ready' and ready_at = :readyAt and attempt = 0 order by id limit 1;

-- statement: firstEngaged
-- The run that a busy key is reported with: a running one, else the oldest that is due, else one between attempts, else the
-- oldest that waits for other runs of its schedule.
select id, mark from belfry_runs where id = (select id from (
  select * from (select 1 as place, id from belfry_runs
    where key = :key and finished_at is null and attempt > 0 and state = 'running' order by id limit 1)
  union all
  select 2, min(id) from belfry_runs where key = :key and state = 'ready' and ready_at <= :now
  union all
  select 2, min(id) from belfry_runs where key = :key and state = 'waiting' and waits_for = 'key'
  union all
  select 3, min(id) from belfry_runs where key = :key and finished_at is null and attempt > 0
  union all
  select 4, min(id) from belfry_runs where key = :key and state = 'waiting' and ready_at <= :now and attempt = 0
) where id is not null order by place, id limit 1);

-- statement: firstOverlap
-- The oldest run that waits for others of its schedule.
select id, mark from belfry_runs where schedule = :schedule and waits_for = 'overlap' order by id limit 1;

-- statement: firstUnfinished
-- The oldest of those below.
select id, mark from (
  select * from (select id, mark from belfry_runs
    where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and (engaged = 1 or ready_at <= :now)
    order by id limit 1)
  union all
  select * from (select id, mark from belfry_runs where schedule = :schedule and waits_for = 'overlap' order by id limit 1)
) order by id limit 1;

-- statement: unfinishedOf
-- The runs of a schedule that are due or began and have not ended, and ticks recorded ahead, in two indexes: up to :limit that
-- wait for no other run of the schedule, and up to :limit of the newest that do.
select * from (select * from belfry_runs
  where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and (engaged = 1 or ready_at <= :now)
  order by id limit :limit)
union all
select * from (select * from belfry_runs where schedule = :schedule and waits_for = 'overlap' order by id desc limit :limit)
order by id;
