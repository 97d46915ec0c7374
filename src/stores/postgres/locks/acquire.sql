-- Locks: taking one, or a place in its queue.
--
-- One rule decides everything: a lease is its holder's until its time is over AND another holder took it. The same names,
-- leases and tokens serve the keys of runs; a run that waits for a key is a row of `runs`, a caller that waits for a lock
-- a row of `waiters`.
--
--            acquire                    release, or its time is over
--    free ─────────────▶ held ─────────────────────────────────────────▶ free
--                         │ ▲                     nothing waits
--        acquire, waitMs  │ │ the holder asks again or renews: extended
--                         ▼ │
--                    waited for ── release, expiry ──▶ handed off ──▶ held by the oldest waiter whose place
--                                                                      has not expired
--
-- - Two that ask at once: the first to lock the name's row takes the permit; the second finds it busy. Its `until` says
--   when to ask again; with a wait time it has a place in the queue.
-- - A caller that does not queue and finds it plainly busy only looks: a crowd that polls a lock costs it nothing.
-- - A holder that stalls past its time and comes back: if no other took the lease, it renews and goes on. If another
--   did, its row is gone, and renew, release and (for a run) settle are refused.
-- - A holder that dies: the next that asks takes its place, with a higher token: when its time is over, or at once where
--   instances prove that they live.
-- - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lease that was handed to it in
--   between. So it asks again to confirm a hand-off. Only a waiter that died together with the process that handed the
--   lease to it has it for its full time, as that holder would have had.
-- - A release that comes twice, or late, only removes the holder's own row.
-- - A release that handed the lease to nobody and that a crash of the server undoes: the lease runs out.

-- Takes a permit, or a place in the queue. Locks: the name, and for a holder whose time is over its run (`make_room`).
-- Reply lost: the caller repeats, and its holder id finds its own lease.
create or replace function belfry.acquire_lock(
  lock_name text, holder_id text, ttl bigint, permit_limit integer, instance_id text, least_token bigint, wait_ms bigint,
  proof_number integer,
  out now_ms bigint, out until bigint, out token bigint, out acquired_at bigint, out expires_at bigint,
  out instance text, out hints belfry.hint[]
) language plpgsql as $$
declare
  now_us bigint := belfry.now_us();
  holders integer;
  is_own boolean;
  schedules text[] := array[]::text[];
  freed text[];
  passed record;
begin
  hints := '{}';
  now_ms := now_us / 1000;
  if wait_ms <= 0 and exists (select 1 from belfry.leases l where l.name = lock_name) then
    select count(*) filter (where l.counts_until > now_ms),
        min(l.counts_until) filter (where l.counts_until > now_ms), bool_or(l.holder = holder_id)
      into holders, until, is_own from belfry.lease_times l where l.name = lock_name;
    if holders >= permit_limit and not is_own
      and not exists (select 1 from belfry.waited_for w where w.name = lock_name) then
      return;
    end if;
  end if;

  perform belfry.durable();
  perform belfry.lock_name(lock_name);
  now_us := belfry.now_us();
  now_ms := now_us / 1000;

  -- Most locks are free. Then none of the questions below is open, and asking them would double the cost.
  if not exists (select 1 from belfry.leases l where l.name = lock_name)
    and not exists (select 1 from belfry.waited_for w where w.name = lock_name) then
    token := belfry.grant_permit(lock_name, holder_id, ttl, instance_id, proof_number, least_token, now_us);
    acquired_at := now_ms;
    expires_at := now_ms + ttl;
    instance := instance_id;
    return;
  end if;

  -- The holder's own lease is extended before any waiter is served, even if it has expired.
  update belfry.leases l
  set expires_at = case when l.run is null then now_ms + ttl end,
    proof = case when l.run is null then proof_number end
  where l.name = lock_name and l.holder = holder_id and not l.released;
  if found then
    delete from belfry.waiters w where w.name = lock_name and w.holder = holder_id;
  else
    select * into passed from belfry.pass_to_waiters(lock_name, '{}', now_us);
    schedules := passed.schedules;
    if cardinality(passed.granted) > 0 then
      hints := array['leases', 'granted']::belfry.hint[];
    end if;
    if holder_id = any (passed.granted) then
      -- It was next in the queue, and by asking it proves that it lives.
      update belfry.leases l set expires_at = now_ms + ttl, proof = proof_number
      where l.name = lock_name and l.holder = holder_id;
    elsif belfry.live_holders(lock_name, now_ms) < permit_limit then
      delete from belfry.leases l where l.name = lock_name and l.holder = holder_id;
      freed := belfry.grant_lock(
        lock_name, holder_id, ttl, permit_limit, instance_id, proof_number, least_token, now_us);
      schedules := schedules || freed;
      if freed is not null then
        delete from belfry.waiters w where w.name = lock_name and w.holder = holder_id;
      end if;
    end if;
  end if;

  select l.token, l.acquired_at, l.expires_at, l.instance into token, acquired_at, expires_at, instance
  from belfry.lease_times l where l.name = lock_name and l.holder = holder_id and not l.released;
  if token is null and wait_ms > 0 then
    perform belfry.take_place(
      lock_name, holder_id, ttl, permit_limit, instance_id, least_token, now_ms + wait_ms, wait_ms, proof_number, now_ms);
  end if;
  hints := hints || belfry.pass_on(array[lock_name], schedules, now_us, 'wait');
  if token is null then
    -- With no live holder counted, a holder that had expired is proving its life at this moment: ask again soon.
    select coalesce(min(l.counts_until), now_ms + 10) into until
    from belfry.lease_times l where l.name = lock_name and l.counts_until > now_ms;
    -- A place need not survive a crash of the server, because its waiter asks again. Without the wait for the disk, the
    -- name is locked for a shorter time.
    if hints = '{}' and cardinality(schedules) = 0 then
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
end $$;

-- A place in a queue. One that is fresh and asks for the same is left alone, so that waiters may ask often.
create or replace function belfry.take_place(
  lock_name text, holder_id text, ttl bigint, permit_limit integer, instance_id text, least_token bigint,
  place_until bigint, wait_ms bigint, proof_number integer, now_ms bigint
) returns void language plpgsql as $$
begin
  insert into belfry.waiters as w (name, holder, ttl_ms, permits, instance, floor, until, proof)
  values (lock_name, holder_id, ttl, permit_limit, instance_id, least_token, place_until, proof_number)
  on conflict on constraint waiters_pkey do update
  set ttl_ms = excluded.ttl_ms, permits = excluded.permits, instance = excluded.instance, floor = excluded.floor,
    proof = excluded.proof,
    until = case when w.ttl_ms = excluded.ttl_ms and w.permits = excluded.permits and w.until - now_ms >= wait_ms * 2 / 3
      then w.until else excluded.until end;
end $$;

-- Takes many locks, as far as they are free: held by nobody, and nothing waits for them. The others are left to
-- `acquire_lock`. All get the same token: it only has to grow with each grant of a name.
-- Locks: the names, in order.
create or replace function belfry.acquire_locks(acquisitions belfry.acquisition[], proof_number integer)
returns table (name text, holder text, token bigint, acquired_at bigint, expires_at bigint, instance text)
language plpgsql as $$
declare
  names text[] := array(select a.name from unnest(acquisitions) a);
  free_names text[];
  new_token bigint;
  now_us bigint;
begin
  perform belfry.durable();
  perform belfry.lock_names(names);
  now_us := belfry.now_us();
  free_names := array(
    select n.name from belfry.lock_names n
    where n.name = any (names)
      and not exists (select 1 from belfry.leases l where l.name = n.name)
      and not exists (select 1 from belfry.waited_for w where w.name = n.name));
  select greatest(max(n.last_token) + 1, now_us, (select max(a.floor) from unnest(acquisitions) a)) into new_token
  from belfry.lock_names n where n.name = any (free_names);
  update belfry.lock_names n set last_token = new_token where n.name = any (free_names);
  return query
  insert into belfry.leases as l (name, holder, token, acquired_at, expires_at, instance, proof)
  select distinct on (a.name collate "C")
    a.name, a.holder, new_token, now_us / 1000, now_us / 1000 + a.ttl_ms, a.instance, proof_number
  from unnest(acquisitions) a where a.name = any (free_names) order by a.name collate "C"
  returning l.name, l.holder, l.token, l.acquired_at, l.expires_at, l.instance;
end $$;
