-- Acquires locks, or places in their queues.
--
-- One rule decides everything: a lease belongs to its holder until it has expired AND another holder took it. Keys of
-- runs use the same names, leases and tokens. A run that waits for a key is a row of `runs`; a caller that waits for a
-- lock is a row of `waiters`.
--
--            acquire                    release or expiry
--     free ────────────▶ held ─────────────────────────────────────────▶ free
--                         │ ▲                     no waiters
--        acquire, waitMs  │ │ the holder asks again or renews: extended
--                         ▼ │
--                    waited for ── release, expiry ──▶ handed off ──▶ held by the oldest waiter whose place
--                                                                      has not expired
--
-- - Two callers ask at once: the first to lock the name's row gets the permit. The second gets the instant at which to
--   ask again (`until`) and, with a wait time, a place in the queue.
-- - A caller finds all permits held, and has a fresh place or wants none: it only reads, so polling a held lock writes
--   nothing.
-- - A holder stalls past its expiry and comes back: if no other holder took the lease, it renews and goes on. If
--   another one did, its row is gone, and renew, release and (for a run) settle are refused.
-- - A holder dies: the next caller gets its lease, with a higher token, when the lease has expired, or at once if
--   instances prove that they live (advisory mode).
-- - A waiter dies: its place expires `waitMs` after it last asked, and so does a lease that was handed to it meanwhile.
--   A living waiter confirms a hand-off by asking again, which extends the lease to its full time.
-- - A release comes twice, or late: it removes only the caller's own row.
-- - A release handed the lease to no waiter, and a crash of the server undoes it: the lease expires.

-- Takes permits, or places in queues. Returns a row for each acquisition, in any order: with its lease, or with the
-- instant at which to ask again.
--
-- Locks: the names in order; for an expired holder also its run (`make_room`).
-- Reply lost: the caller repeats, and finds its own lease or place by its holder id.
create or replace function belfry.acquire_locks(acquisitions belfry.acquisition[], proof_number integer)
returns table (now_ms bigint, until bigint, name text, holder text, token bigint, acquired_at bigint, expires_at bigint,
  instance text, hints belfry.hint[])
language plpgsql as $$
declare
  now_us bigint := belfry.now_us();
  asking belfry.acquisition[] := acquisitions;
  names text[] := array(select a.name from unnest(acquisitions) a);
  granted belfry.leases[] := array[]::belfry.leases[];
  schedules text[] := array[]::text[];
  changes belfry.hint[] := array[]::belfry.hint[];
  is_any_held boolean;
  acquisition belfry.acquisition;
  step record;
begin
  if exists (select 1 from belfry.leases l where l.name = any (names)) then
    asking := array(select a from unnest(acquisitions) a where not belfry.only_looks(a, now_us / 1000));
    names := array(select a.name from unnest(asking) a);
  end if;
  if cardinality(asking) > 0 then
    perform belfry.durable();
    perform belfry.lock_names(names);
    now_us := belfry.now_us();
    granted := array(select l from belfry.grant_free_locks(asking, names, proof_number, now_us) l);
  end if;
  return query
  select now_us / 1000, null::bigint, g.name, g.holder, g.token, g.acquired_at, g.expires_at, g.instance, changes
  from unnest(granted) g;
  if cardinality(granted) = cardinality(acquisitions) then
    return;
  end if;

  is_any_held := cardinality(granted) > 0;
  foreach acquisition in array asking loop
    continue when exists (
      select 1 from unnest(granted) g where g.name = acquisition.name and g.holder = acquisition.holder);
    select * into step from belfry.acquire_lock(acquisition, proof_number, now_us);
    is_any_held := is_any_held or step.is_held;
    schedules := schedules || step.schedules;
    changes := changes || step.hints;
  end loop;
  if cardinality(asking) > 0 then
    changes := changes || belfry.pass_on(names, schedules, now_us, 'wait');
    -- A place need not survive a crash of the server, because its waiter asks again. Without waiting for the disk, this
    -- transaction holds its locks on the names for a shorter time.
    if not is_any_held and changes = '{}' and cardinality(schedules) = 0 then
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  -- Without a live holder, the lock was not granted because an expired holder is renewing its lease at this moment. The
  -- caller then asks again after 10 ms.
  return query
  select now_us / 1000, coalesce(held.until, now_us / 1000 + 10), a.name, a.holder, own.token, own.acquired_at,
    own.expires_at, own.instance, changes
  from unnest(acquisitions) a
  left join lateral (
    select * from belfry.leases l where l.name = a.name and l.holder = a.holder and not l.released limit 1) own on true
  left join lateral (
    select min(l.counts_until) as until from belfry.lease_times l
    where own.token is null and l.name = a.name and l.counts_until > now_us / 1000) held on true
  where not exists (select 1 from unnest(granted) g where g.name = a.name and g.holder = a.holder);
end $$;

-- Whether all permits are held by others, and the acquisition has nothing to write: it wants no place in the queue, or
-- has a fresh one with the same parameters.
create or replace function belfry.only_looks(acquisition belfry.acquisition, now_ms bigint) returns boolean
language plpgsql as $$
begin
  return not exists (select 1 from belfry.leases l where l.name = acquisition.name and l.holder = acquisition.holder)
    and belfry.live_holders(acquisition.name, now_ms) >= acquisition.permits
    and (acquisition.wait_ms <= 0 or exists (
      select 1 from belfry.waiters w
      where w.name = acquisition.name and w.holder = acquisition.holder and w.ttl_ms = acquisition.ttl_ms
        and w.permits = acquisition.permits and w.until - now_ms >= acquisition.wait_ms * 2 / 3));
end $$;

-- Grants locks that have no holder and no waiter, the usual case, with one statement for the whole batch. With 50 in
-- flight, a loop reached a quarter of that throughput in `npm run bench -- locks`. All get the same token, because
-- tokens only have to grow from grant to grant of one name.
create or replace function belfry.grant_free_locks(
  asking belfry.acquisition[], names text[], proof_number integer, now_us bigint
) returns setof belfry.leases language plpgsql as $$
declare
  free_names text[];
  new_token bigint;
begin
  select array_agg(n.name), greatest(max(n.last_token) + 1, now_us, (select max(a.floor) from unnest(asking) a))
  into free_names, new_token
  from belfry.lock_names n
  where n.name = any (names)
    and not exists (select 1 from belfry.leases l where l.name = n.name)
    and not exists (select 1 from belfry.waited_for w where w.name = n.name);
  update belfry.lock_names n set last_token = new_token where n.name = any (free_names);
  return query
  insert into belfry.leases as l (name, holder, token, acquired_at, expires_at, instance, proof)
  select distinct on (a.name collate "C") a.name, a.holder, new_token, now_us / 1000, now_us / 1000 + a.ttl_ms, a.instance,
    case when not a.remote then proof_number end
  from unnest(asking) with ordinality a where a.name = any (free_names) order by a.name collate "C", a.ordinality
  returning l.*;
end $$;

-- Acquires one lock that has holders or waiters. `is_held`: the acquisition's holder holds it now. The caller has
-- locked the name, and calls `pass_on` afterwards.
create or replace function belfry.acquire_lock(
  acquisition belfry.acquisition, proof_number integer, now_us bigint,
  out is_held boolean, out schedules text[], out hints belfry.hint[]
) language plpgsql as $$
declare
  now_ms bigint := now_us / 1000;
  lock_name text := acquisition.name;
  holder_id text := acquisition.holder;
  new_proof integer := case when not acquisition.remote then proof_number end;
  freed text[];
  passed record;
begin
  schedules := '{}';
  hints := '{}';
  -- The holder's own lease is extended before any waiter is served, even if it has expired.
  update belfry.leases l
  set expires_at = case when l.run is null then now_ms + acquisition.ttl_ms end,
    proof = case when l.run is null then new_proof end
  where l.name = lock_name and l.holder = holder_id and not l.released;
  is_held := found;
  if not is_held then
    select * into passed from belfry.pass_to_waiters(lock_name, now_us);
    schedules := passed.schedules;
    if cardinality(passed.granted) > 0 then
      hints := array['leases', 'granted']::belfry.hint[];
    end if;
    -- The holder may have been next in the queue. By asking now it proves that it lives, so it gets its full time.
    update belfry.leases l set expires_at = now_ms + acquisition.ttl_ms, proof = new_proof
    where l.name = lock_name and l.holder = holder_id and holder_id = any (passed.granted);
    is_held := found;
  end if;
  if not is_held and belfry.live_holders(lock_name, now_ms) < acquisition.permits then
    delete from belfry.leases l where l.name = lock_name and l.holder = holder_id;
    freed := belfry.grant_lock(lock_name, holder_id, acquisition.ttl_ms, acquisition.permits, acquisition.instance,
      new_proof, acquisition.floor, now_us);
    schedules := schedules || freed;
    is_held := freed is not null;
  end if;
  if is_held then
    delete from belfry.waiters w where w.name = lock_name and w.holder = holder_id;
  elsif acquisition.wait_ms > 0 then
    insert into belfry.waiters (name, holder, ttl_ms, permits, instance, floor, until, proof)
    values (lock_name, holder_id, acquisition.ttl_ms, acquisition.permits, acquisition.instance, acquisition.floor,
      now_ms + acquisition.wait_ms, new_proof)
    on conflict on constraint waiters_pkey do update
    set ttl_ms = excluded.ttl_ms, permits = excluded.permits, instance = excluded.instance, floor = excluded.floor,
      until = excluded.until, proof = excluded.proof;
  end if;
end $$;
