-- statement: commitRun
-- Marks the run as succeeded by the handler's transaction, if the attempt still has the run and its key.
update belfry_runs set committed = 1, result = :result
where id = :run and token = :token and state = 'running' and committed = 0
  and (key is null or exists (select 1 from belfry_leases l where l.run = :run and l.token = :token));
