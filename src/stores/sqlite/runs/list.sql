-- statement: runBounds
select (select min(id) from belfry_runs) as oldest, (select max(id) from belfry_runs) as newest;

-- statement: listRuns
-- A window of ids, newest first.
select * from belfry_runs where id < :before and id >= :from/* and conditions */ order by id desc limit :limit;
