-- statement: insertRun
insert into belfry_runs (mark, state, waits_for, target, options, origin, schedule, tick, backfill, payload, priority, keep,
  key, key_limit, key_when_busy, unstamped, dedupe, dedupe_ms, created_at, ready_at, engaged)
values (:mark, :state, :waitsFor, :target, :options, :origin, :schedule, :tick, :backfill, :payload, :priority, :keep,
  :key, :keyLimit, :keyWhenBusy, :unstamped, :dedupe, :dedupeMs, :createdAt, :readyAt, :engaged);

-- statement: sameBackfill
select id, mark from belfry_runs where schedule = :schedule and tick = :tick and origin = 'backfill' and backfill = :backfill;

-- statement: sameInstant
-- A run of the key that has not begun and becomes ready at that instant.
select id, mark from belfry_runs
where key = :key and state = 'ready' and ready_at = :readyAt and attempt = 0 order by id limit 1;

-- statement: firstBegun
-- A run of the key that began and has not ended: one that is running, else the oldest.
select id, mark, state from belfry_runs where key = :key and finished_at is null and attempt > 0
order by state = 'running' desc, id limit 1;

-- statement: firstDueWaiting
select id, mark from belfry_runs
where key = :key and state = 'waiting' and ready_at <= :now and attempt = 0 order by id limit 1;

-- statement: firstEngagedOf
-- The oldest run of a schedule that is due or began and has not ended, or a tick recorded ahead.
select id, mark from belfry_runs
where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and (engaged = 1 or ready_at <= :now)
order by id limit 1;

-- statement: firstOverlap
-- The oldest run that waits for others of its schedule.
select id, mark from belfry_runs where schedule = :schedule and waits_for = 'overlap' order by id limit 1;

-- statement: unfinishedOf
-- Runs of a schedule that are due or began and have not ended, and ticks recorded ahead.
select * from belfry_runs
where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and (engaged = 1 or ready_at <= :now)
union all
select * from belfry_runs where schedule = :schedule and waits_for = 'overlap'
order by id;
