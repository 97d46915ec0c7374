-- statement: countEngaged
-- How many runs of a key are due, or began and have not ended. Counting stops at the limit.
select
  (select count(*) from (
    select 1 from belfry_runs where key = :key and finished_at is null and attempt > 0 limit :limit))
  + (select count(*) from (
    select 1 from belfry_runs where key = :key and state = 'ready' and ready_at <= :now and attempt = 0 limit :limit))
  + (select count(*) from (
    select 1 from belfry_runs where key = :key and state = 'waiting' and ready_at <= :now and attempt = 0 limit :limit))
  as runs;
