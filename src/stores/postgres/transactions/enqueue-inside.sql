-- Creates runs inside the caller's own transaction. Creates nothing if the statement before this one had another
-- transaction number: over a pool, or outside of a transaction, each statement has its own. The hint is sent with the
-- commit, when the runs become visible. Its sender is '-', so that the calling process does not ignore it as its own.
create or replace function belfry.enqueue_runs_inside(transaction_number text, channel text, runs_json json)
returns table (outcome text, run text) language plpgsql as $$
declare
  new_runs belfry.new_run[] := array(select n from json_populate_recordset(null::belfry.new_run, runs_json) n);
begin
  if pg_current_xact_id()::text <> transaction_number then
    return query select 'outside', null::text;
    return;
  end if;
  -- A run that is checked against other runs must see what their transactions committed while this one waited for their
  -- locks. Only read committed shows that.
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
