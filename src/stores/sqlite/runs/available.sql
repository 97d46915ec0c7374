-- statement: countBegun
select count(*) as runs from (
  select 1 from belfry_runs where key = :key and finished_at is null and attempt > 0 limit :limit);

-- statement: countReady
select count(*) as runs from (
  select 1 from belfry_runs where key = :key and state = 'ready' and ready_at <= :now and attempt = 0 limit :limit);

-- statement: countWaiting
select count(*) as runs from (
  select 1 from belfry_runs where key = :key and state = 'waiting' and ready_at <= :now and attempt = 0 limit :limit);
