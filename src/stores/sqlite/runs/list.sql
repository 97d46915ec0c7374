-- statement: runBounds
select coalesce((select min(id) from belfry_runs), 1) as oldest, coalesce((select max(id) from belfry_runs), 0) as newest;

-- statement: listRuns
-- A window of ids, newest first.
select * from belfry_runs where id < :before and id >= :from/* and conditions */ order by id desc limit :limit;
