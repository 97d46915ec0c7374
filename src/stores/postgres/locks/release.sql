-- Gives leases, and places in queues, back. What is freed is handed to the next in the queue: `acquire.sql` explains the
-- protocol. A lease whose minimum hold is not over stays until then, as released.
--
-- `released`: the places of those releases that found a lease or a place. `handed`: the waiters that were given a lease. In
-- other processes they learn of it from a notification that goes with the commit, so no other waiter has to look.
--
-- Locks: the names, in order.
-- Reply lost: a repetition finds nothing to release, and cannot tell whether there was something.
create or replace function belfry.release_locks(
  releases belfry.release[], channel text, out released integer[], out handed text[], out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint;
  now_ms bigint;
  names text[] := array(select r.name from unnest(releases) r);
  waited_names text[];
  schedules text[] := array[]::text[];
  is_any_kept boolean;
  lock_name text;
  waiter text;
  passed record;
begin
  perform belfry.durable();
  perform 1 from belfry.lock_names n where n.name = any (names) order by n.name for update;
  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  with places as (
    delete from belfry.waiters w using unnest(releases) with ordinality r
    where w.name = any (names) and w.name = r.name and w.holder = r.holder
    returning r.ordinality as place
  ), kept as (
    update belfry.leases l set released = true, expires_at = l.acquired_at + r.min_hold_ms
    from unnest(releases) with ordinality r
    where l.name = any (names) and l.name = r.name and l.holder = r.holder and not l.released and l.run is null
      and l.acquired_at + r.min_hold_ms > now_ms
    returning r.ordinality as place
  ), freed as (
    delete from belfry.leases l using unnest(releases) with ordinality r
    where l.name = any (names) and l.name = r.name and l.holder = r.holder and not l.released and l.run is null
      and l.acquired_at + r.min_hold_ms <= now_ms
    returning r.ordinality as place
  )
  select array(select place from places union select place from kept union select place from freed),
    exists (select 1 from kept)
  into released, is_any_kept;

  handed := '{}';
  hints := '{}';
  waited_names := array(
    select distinct n.name from unnest(names) n(name)
    where exists (select 1 from belfry.waited_for w where w.name = n.name) order by n.name);
  foreach lock_name in array waited_names loop
    select * into passed from belfry.pass_to_waiters(lock_name, now_us);
    schedules := schedules || passed.schedules;
    handed := handed || passed.granted;
    foreach waiter in array passed.granted loop
      if channel <> '' then
        perform pg_notify(channel, 'handed ' || json_build_object('name', lock_name, 'holder', waiter));
      end if;
    end loop;
  end loop;
  if cardinality(waited_names) > 0 then
    hints := belfry.pass_on(waited_names, schedules, now_us, 'wait');
  end if;
  -- The release of a lock that goes to nobody need not reach the disk: if a crash of the server undoes it, the lease runs
  -- out as if its holder had died. A lease that is held on to must: it may have been prolonged.
  if not is_any_kept and handed = '{}' and hints = '{}' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
end $$;
