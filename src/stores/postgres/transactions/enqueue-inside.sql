-- Creates runs inside the caller's own transaction, if the statement before this one had the same transaction number: over
-- a pool, or outside of a transaction, each statement has another. The hint is sent with the commit, when the runs can be
-- seen. Its sender is '-', so that the calling process does not ignore it as its own.
create or replace function belfry.enqueue_runs_inside(transaction_number text, channel text, runs_json json)
returns table (outcome text, run text) language plpgsql as $$
declare
  new_runs belfry.new_run[] := array(select n from json_populate_recordset(null::belfry.new_run, runs_json) n);
begin
  if pg_current_xact_id()::text <> transaction_number then
    return query select 'outside', null::text;
    return;
  end if;
  -- A run that is checked against others must see what they committed while it waited for their locks.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
    and (select bool_or(n.check_key or n.overlap <> 'allow') from unnest(new_runs) n) then
    return query select 'isolated', null::text;
    return;
  end if;
  if channel <> '' then
    perform pg_notify(channel, '- runs');
  end if;
  return query select e.outcome, e.run from belfry.enqueue_runs(new_runs) e;
end $$;
