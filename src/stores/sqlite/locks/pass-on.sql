-- statement: firstWaiter
select name, holder, ttl_ms as ttlMs, permits, instance, floor, until from belfry_waiters where name = :name order by place limit 1;

-- statement: oldestDueRun
-- The oldest run of a key that is ready and due.
select min(id) as run from belfry_runs where key = :name and state = 'ready' and ready_at <= :now;

-- statement: oldestWaitingRun
select * from belfry_runs where key = :name and state = 'waiting' and waits_for = 'key' order by id limit 1;

-- statement: noteFreed
-- A name without holders and waiters is kept for its last token, for a while.
update belfry_names set freed_at = :now
where name = :name and freed_at is null
  and not exists (select 1 from belfry_leases where name = :name)
  and not exists (select 1 from belfry_waiters where name = :name)
  and not exists (select 1 from belfry_runs where key = :name and state = 'ready')
  and not exists (select 1 from belfry_runs where key = :name and state = 'waiting')
  and not exists (select 1 from belfry_runs where key = :name and finished_at is null and attempt > 0);

-- statement: firstOfSchedule
-- The oldest run that waits for earlier runs of its schedule, if every unfinished run waits.
select * from belfry_runs
where schedule = :schedule and waits_for = 'overlap' and not exists (
  select 1 from belfry_runs
  where schedule = :schedule and finished_at is null and waits_for is not 'overlap' and (engaged = 1 or ready_at <= :now)
)
order by id limit 1;
