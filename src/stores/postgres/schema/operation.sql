-- A check and an error that all operations share.

-- An acknowledged write must survive a crash of the server, so `synchronous_commit` is on even if a role or a database
-- has switched it off. Each statement must see what was committed while the one before it waited for a lock, so the
-- isolation level must be read committed; behind a pooler, an earlier user may have left another level on the
-- connection. `inside`: the operation may run in the caller's transaction, whose isolation level is the caller's
-- choice.
create or replace function belfry.durable(inside boolean default false) returns void language plpgsql as $$
begin
  if not inside and current_setting('transaction_isolation') not like 'read %committed' then
    raise exception 'an operation of Belfry cannot run at the isolation level %',
      current_setting('transaction_isolation') using errcode = 'BF003';
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

-- Ends an operation that found a row locked against the lock order, or its decision out of date. This rolls back what
-- it changed, and its caller tries it again, as after a serialization failure.
create or replace function belfry.try_again(why text) returns void language plpgsql as $$
begin
  raise exception 'belfry: %', why using errcode = '40001';
end $$;
