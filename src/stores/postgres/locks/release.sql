-- Releases leases and places in queues. A freed lease is handed to the next waiter: `acquire.sql` explains the
-- protocol. A lease whose minimum hold is not over is marked as released, and stays until that ends.
--
-- `released`: the positions, from 1, of the releases that found a lease or a place. `handed`: the waiters that were
-- given a lease. Waiters in other processes learn of it from a notification that is sent with the commit, so no other
-- waiter has to look.
--
-- Locks: the names, in order. All names in a call differ: two leases of one name are released by two calls.
-- Reply lost: a repetition finds nothing to release, and cannot tell whether the first try released anything.
create or replace function belfry.release_locks(
  releases belfry.release[], channel text, out released integer[], out handed text[], out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint;
  names text[];
  holders text[];
  holds bigint[];
  waited_names text[];
  schedules text[] := array[]::text[];
  is_any_kept boolean := false;
  waiter text;
  passed record;
begin
  perform belfry.durable();
  select array_agg(r.name), array_agg(r.holder), array_agg(r.min_hold_ms) into names, holders, holds from unnest(releases) r;
  perform 1 from belfry.lock_names n where n.name = any (names) order by n.name for update;
  now_us := belfry.now_us();
  with freed as (
    delete from belfry.leases l
    where l.name = any (names) and l.holder = holders[array_position(names, l.name)] and not l.released and l.run is null
      and l.acquired_at + holds[array_position(names, l.name)] <= now_us / 1000
    returning l.name
  )
  select coalesce(array_agg(array_position(names, f.name)), '{}') into released from freed f;
  for place in 1 .. cardinality(names) loop
    continue when place = any (released);
    update belfry.leases l set released = true, expires_at = l.acquired_at + holds[place]
    where l.name = names[place] and l.holder = holders[place] and not l.released and l.run is null;
    is_any_kept := is_any_kept or found;
    if found then
      released := released || place;
    end if;
    delete from belfry.waiters w where w.name = names[place] and w.holder = holders[place];
    if found then
      released := released || place;
    end if;
  end loop;

  handed := '{}';
  hints := '{}';
  waited_names := array(
    select distinct n.name from unnest(names) n(name)
    where exists (select 1 from belfry.waited_for w where w.name = n.name) order by n.name);
  for place in 1 .. cardinality(waited_names) loop
    select * into passed from belfry.pass_to_waiters(waited_names[place], now_us);
    schedules := schedules || passed.schedules;
    handed := handed || passed.granted;
  end loop;
  foreach waiter in array handed loop
    if channel <> '' then
      perform pg_notify(channel, 'handed ' || json_build_object('holder', waiter));
    end if;
  end loop;
  if cardinality(waited_names) > 0 then
    hints := belfry.pass_on(waited_names, schedules, now_us, 'wait');
  end if;
  -- A release that hands the lock to no waiter need not reach the disk: if a crash of the server undoes it, the lease
  -- expires as if its holder had died. A lease that is kept for its minimum hold must reach the disk, because its
  -- expiry may now be later.
  if not is_any_kept and handed = '{}' and hints = '{}' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
end $$;
