-- statement: dataVersion
-- Changes when another connection has committed.
pragma data_version;

-- statement: cancelledRuns
select id from belfry_runs where state = 'running' and cancel_requested = 1;
