-- Giving locks back, and handing them to the next in the queue. `acquire.sql` explains the protocol.

-- Gives back a lease, or a place in its queue. A lease whose minimum hold is not over stays until then, as released.
-- Locks: the name. `here` are the holders that wait for it in the calling process: they are told by `handed`, those of
-- other processes by a notification that goes with the commit. No other instance has to look then.
-- Reply lost: a repetition finds nothing to release, and cannot tell whether there was something.
create or replace function belfry.release_lock(
  lock_name text, holder_id text, min_hold_ms bigint, here text[], channel text,
  out had boolean, out handed json, out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint;
  now_ms bigint;
  lease belfry.leases;
  passed record;
  told json;
  told_here json[] := array[]::json[];
  was_passed_on boolean := false;
begin
  perform belfry.durable();
  had := false;
  hints := '{}';
  perform 1 from belfry.lock_names n where n.name = lock_name for update;
  if not found then
    return;
  end if;
  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  delete from belfry.waiters w where w.name = lock_name and w.holder = holder_id;
  had := found;
  select * into lease from belfry.leases l
  where l.name = lock_name and l.holder = holder_id and not l.released and l.run is null;
  if found and lease.acquired_at + min_hold_ms > now_ms then
    had := true;
    update belfry.leases l set released = true, expires_at = lease.acquired_at + min_hold_ms
    where l.name = lock_name and l.holder = holder_id;
  elsif found then
    had := true;
    delete from belfry.leases l where l.name = lock_name and l.holder = holder_id;
  end if;

  if exists (select 1 from belfry.waited_for w where w.name = lock_name) then
    select * into passed from belfry.pass_to_waiters(lock_name, here, now_us);
    for lease in select * from belfry.leases l where l.name = lock_name and l.holder = any (passed.granted) loop
      told := json_build_object('name', lease.name, 'holder', lease.holder, 'token', lease.token,
        'acquiredAt', lease.acquired_at, 'expiresAt', lease.expires_at, 'instance', lease.instance, 'proof', lease.proof);
      if lease.holder = any (here) then
        told_here := told_here || told;
      elsif channel <> '' then
        perform pg_notify(channel, 'handed ' || told);
      end if;
    end loop;
    handed := array_to_json(told_here);
    hints := belfry.pass_on(array[lock_name], passed.schedules, now_us, 'wait');
    was_passed_on := hints <> '{}' or cardinality(passed.granted) > 0;
  end if;
  -- The release of a lock that goes to nobody need not reach the disk: if a crash of the server undoes it, the lease runs
  -- out as if its holder had died. A lease that is held on to must: it may have been prolonged.
  if not was_passed_on and min_hold_ms <= 0 then
    perform set_config('synchronous_commit', 'off', true);
  end if;
end $$;

-- Gives many leases back, as far as nothing waits for them, and returns the places of those. The others are left to
-- `release_lock`, and so is a second lease of the same name.
-- Locks: the names, in order.
create or replace function belfry.release_locks(names text[], holders text[]) returns table (place integer)
language plpgsql as $$
begin
  perform belfry.durable();
  perform 1 from belfry.lock_names n where n.name = any (names) order by n.name for update;
  perform set_config('synchronous_commit', 'off', true);
  return query
  delete from belfry.leases l
  where l.name = any (names) and l.holder = holders[array_position(names, l.name)] and not l.released and l.run is null
    and not exists (select 1 from belfry.waited_for w where w.name = l.name)
  returning array_position(names, l.name);
end $$;
