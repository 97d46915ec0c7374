-- statement: readyTargets
-- Each lookup goes from one target of the index to the next, however many runs there are.
with recursive targets (target) as (
  select min(target) from belfry_runs where state = 'ready'
  union all
  select (select min(r.target) from belfry_runs r where r.state = 'ready' and r.target > targets.target)
  from targets where target is not null
)
select json_group_array(target) as targets from (select target from targets where target is not null limit :limit);

-- statement: countDue
select count(*) as due from (
  select 1 from belfry_runs
  where state = 'ready' and target = :target and priority = :priority and ready_at <= :now limit :limit);
