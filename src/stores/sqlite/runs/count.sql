-- statement: countRuns
-- Each part reads a range of one index: belfry_runs_open and belfry_runs_overlap for runs of schedules, belfry_runs_alone for
-- others.
select count(*) as count from (
  select 1 from (
    select 1 from belfry_runs
    where schedule is not null and finished_at is null and waits_for is not 'overlap'
      and schedule >= :prefix and schedule < :beyond limit :limit
  )
  union all
  select 1 from (
    select 1 from belfry_runs
    where schedule is not null and waits_for = 'overlap' and schedule >= :prefix and schedule < :beyond limit :limit
  )
  union all
  select 1 from (
    select 1 from belfry_runs where schedule is null and finished_at is null
      and target >= 'job:' || :prefix and target < 'job:' || :beyond limit :limit
  )
  union all
  select 1 from (
    select 1 from belfry_runs where schedule is null and finished_at is null
      and target >= 'sink:' || :prefix and target < 'sink:' || :beyond limit :limit
  )
  limit :limit
);
