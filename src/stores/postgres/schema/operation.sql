-- What every operation needs before it begins.

-- What is acknowledged must survive a crash of the server, also where a role or a database has chosen otherwise for its
-- own writes. And each statement must see what was committed while the one before it waited for a lock: behind a pooler,
-- an earlier user may have left another isolation level on the connection. In a transaction of the caller's, both are
-- the caller's choice.
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

-- Ends an operation that met a row out of turn, or that found its decision overtaken. It has changed nothing, and its
-- caller tries it again, as after a serialization failure.
create or replace function belfry.try_again(why text) returns void language plpgsql as $$
begin
  raise exception 'belfry: %', why using errcode = '40001';
end $$;
