-- The last statement of a handler's transaction: marks the run with the attempt's token, or fails.
--
-- A takeover locks the run's row before it takes the run and its lease away, and so does this function. So one happens
-- after the other. The lease is read only after the row is locked.
create or replace function belfry.commit_run(
  run_id bigint, attempt_token bigint, transaction_number text, result_text text
) returns void language plpgsql as $$
declare
  run belfry.runs;
begin
  if pg_current_xact_id_if_assigned()::text is distinct from transaction_number then
    raise exception 'the callback of run % has ended its transaction itself', run_id using errcode = 'BF002';
  end if;
  perform belfry.durable();
  select * into run from belfry.runs r
  where r.id = run_id and r.token = attempt_token and r.state = 'running' for no key update;
  if not found or (run.key is not null
    and not exists (select 1 from belfry.leases l where l.run = run_id and l.token = attempt_token)) then
    raise exception 'run % is no longer this attempt''s', run_id using errcode = 'BF001';
  end if;
  update belfry.runs r set settled_token = attempt_token, result = result_text where r.id = run_id;
end $$;
