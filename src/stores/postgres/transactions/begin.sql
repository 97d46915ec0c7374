-- Begins a handler's transaction. Returns whether the attempt :token still has the run :run, and with it the run's key.
--
-- The server ends the transaction when it is idle for 15 s, so that a process which is stopped in its callback holds no
-- rows.
begin isolation level read committed;
set local idle_in_transaction_session_timeout = 15000;
select opened.number, opened.process, run.id is not null as is_current,
  run.settled_token = run.token as has_committed, run.result
from (select pg_catalog.pg_current_xact_id()::text as number, pg_catalog.pg_backend_pid() as process) opened
left join belfry.runs run on run.id = :run and run.token = :token and run.state = 'running'
  and (run.key is null or exists (select 1 from belfry.leases lease where lease.run = run.id))
