-- The only place where a freed permit is given to the next in the queue. `acquire.sql` explains the protocol.
--
-- Waiters of locks come before waiting runs, because a waiter is a caller that is blocked until it gets the lock. All
-- functions expect the caller to have locked the name, so changes of one name happen one after the other.

-- The number of live holders of a name.
create or replace function belfry.live_holders(lock_name text, now_ms bigint) returns integer language plpgsql as $$
begin
  return (select count(*) from belfry.lease_times l where l.name = lock_name and l.counts_until > now_ms);
end $$;

-- Removes expired holders, the one that expired first to begin with, until there is room for one more. If a removed
-- holder is a run, the run is taken over in the same transaction. Returns the schedules of those runs, or null if there
-- is no room after all. Two kinds of expired holders stay: those that are renewing at this moment (a renewal has locked
-- the lease's row, a beat the instance's), and those whose run or dedupe key another transaction has locked. This
-- function waits for no lock.
create or replace function belfry.make_room(lock_name text, permits integer, now_ms bigint) returns text[]
language plpgsql as $$
declare
  schedules text[] := array[]::text[];
  surplus integer;
  lease record;
  run belfry.runs;
begin
  select count(*) - permits + 1 into surplus from belfry.leases l where l.name = lock_name;
  if surplus <= 0 then
    return schedules;
  end if;
  for lease in
    select l.holder, l.run, l.instance
    from belfry.lease_times t join belfry.leases l on l.name = t.name and l.holder = t.holder
    where t.name = lock_name and l.name = lock_name and t.counts_until <= now_ms
    order by t.counts_until, l.token
    for update of l skip locked
  loop
    if lease.run is not null then
      if exists (select 1 from belfry.instances i where i.id = lease.instance) then
        perform 1 from belfry.instances i
        where i.id = lease.instance and (i.expires_at <= now_ms or belfry.session_is_gone(i.proof))
        for update skip locked;
        continue when not found;
      end if;
      select * into run from belfry.runs r where r.id = lease.run for update skip locked;
      if found then
        continue when not belfry.try_dedupe(run);
        perform belfry.take_over(run, now_ms, true);
        schedules := schedules || run.schedule;
      else
        continue when exists (select 1 from belfry.runs r where r.id = lease.run);
      end if;
    end if;
    delete from belfry.leases l where l.name = lock_name and l.holder = lease.holder;
    surplus := surplus - 1;
    exit when surplus <= 0;
  end loop;
  return case when surplus <= 0 then schedules end;
end $$;

-- The next fencing token of a name.
create or replace function belfry.next_token(lock_name text, least_token bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  new_token bigint;
begin
  update belfry.lock_names n set last_token = greatest(n.last_token + 1, now_us, least_token) where n.name = lock_name
    returning n.last_token into new_token;
  return new_token;
end $$;

-- Gives a permit to a holder, if there is room. Returns the schedules of runs that were taken over, or null without
-- room.
create or replace function belfry.grant_lock(
  lock_name text, holder_id text, ttl_ms bigint, permits integer, instance_id text, proof_number integer,
  least_token bigint, now_us bigint
) returns text[] language plpgsql as $$
declare
  now_ms bigint := now_us / 1000;
  schedules text[] := belfry.make_room(lock_name, permits, now_ms);
begin
  if schedules is not null then
    insert into belfry.leases (name, holder, token, acquired_at, expires_at, instance, proof)
    values (lock_name, holder_id, belfry.next_token(lock_name, least_token, now_us), now_ms, now_ms + ttl_ms, instance_id,
      proof_number);
  end if;
  return schedules;
end $$;

-- Gives free permits to the waiters of a lock, oldest first, and removes places that have expired. A lease that is
-- handed over lasts only until the waiter's place would have expired, because only a waiter that asks again proves that
-- it lives.
create or replace function belfry.pass_to_waiters(
  lock_name text, now_us bigint, out granted text[], out schedules text[]
) language plpgsql as $$
declare
  now_ms bigint := now_us / 1000;
  waiter belfry.waiters;
  freed text[];
begin
  granted := '{}';
  schedules := '{}';
  for waiter in select * from belfry.waiters w where w.name = lock_name order by w.seq loop
    if waiter.until > now_ms then
      exit when belfry.live_holders(lock_name, now_ms) >= waiter.permits;
      freed := belfry.grant_lock(lock_name, waiter.holder, least(waiter.ttl_ms, waiter.until - now_ms), waiter.permits,
        waiter.instance, waiter.proof, waiter.floor, now_us);
      exit when freed is null;
      schedules := schedules || freed;
      granted := granted || waiter.holder;
    end if;
    delete from belfry.waiters w where w.name = lock_name and w.holder = waiter.holder;
  end loop;
end $$;

-- Makes as many runs that wait for a key ready as there are free permits, oldest first. A run stays waiting while an
-- older run of the key is ready and not yet claimed, because it could not start before that one.
create or replace function belfry.wake_runs(lock_name text, now_ms bigint) returns boolean language plpgsql as $$
declare
  woken boolean := false;
  taken integer;
  oldest_due bigint;
  run belfry.runs;
begin
  loop
    run := belfry.oldest_waiting_for_key(lock_name);
    exit when run.id is null;
    select * into run from belfry.runs r where r.id = run.id for update;
    continue when run.state is distinct from 'waiting';
    if taken is null then
      taken := belfry.live_holders(lock_name, now_ms);
      oldest_due := belfry.oldest_due_of_key(lock_name, now_ms);
    end if;
    exit when run.id > oldest_due or taken >= run.key_limit;
    perform belfry.make_ready(run);
    taken := taken + 1;
    woken := true;
  end loop;
  return woken;
end $$;

-- If all unfinished runs of a schedule wait for others of it, the oldest becomes ready. If another transaction has
-- locked the schedule's queue, either the operation is tried again or, with `leave_if_locked`, that transaction passes
-- it on.
create or replace function belfry.let_next_run_go(schedule_id text, now_ms bigint, leave_if_locked boolean) returns boolean
language plpgsql as $$
declare
  first bigint;
  run belfry.runs;
begin
  if (belfry.oldest_waiting_for_overlap(schedule_id)).id is null then
    return false;
  end if;
  if not belfry.try_overlap_queue(schedule_id) then
    if not leave_if_locked then
      perform belfry.try_again('another transaction was at the schedule');
    end if;
    return false;
  end if;
  first := (belfry.oldest_waiting_for_overlap(schedule_id)).id;
  select * into run from belfry.runs r where r.id = first for update;
  if run.state is distinct from 'waiting' then
    return false;
  end if;
  -- One lookup for each reason. One scan for all three would read the runs that wait in this queue, which lie between
  -- the others in the index.
  if exists (
    select 1 from unnest(array['nothing', 'stamp', 'key']::belfry.wait_reason[]) w(reason) cross join lateral (
      select 1 from belfry.runs r
      where r.schedule = schedule_id and r.state < 'succeeded' and r.waits_for = w.reason
        and (r.engaged or r.ready_at <= now_ms)
      limit 1) before)
  then
    return false;
  end if;
  perform belfry.make_ready(run);
  return true;
end $$;

-- The last step of every operation: what it freed goes to the oldest waiter. The caller has locked the names.
-- `when_locked` says what to do if another transaction has locked a schedule's queue:
-- - 'wait' for that transaction
-- - 'give up' and try the operation again, for callers that have locked queues and must not wait for more
-- - 'leave' the queue to that transaction
create or replace function belfry.pass_on(names text[], schedules text[], now_us bigint, when_locked text)
returns belfry.hint[] language plpgsql as $$
declare
  hints belfry.hint[] := array[]::belfry.hint[];
  to_look_at text[] := schedules;
  each_name text;
  passed record;
begin
  for each_name in select distinct n.name from unnest(names) n(name) where n.name is not null order by n.name loop
    select * into passed from belfry.pass_to_waiters(each_name, now_us);
    to_look_at := to_look_at || passed.schedules;
    if cardinality(passed.granted) > 0 then
      hints := hints || array['leases', 'granted']::belfry.hint[];
    end if;
    if belfry.wake_runs(each_name, now_us / 1000) then
      hints := hints || 'runs'::belfry.hint;
    end if;
  end loop;
  if cardinality(to_look_at) = 0
    or not exists (select 1 from belfry.runs r where r.state = 'waiting' and r.waits_for = 'overlap') then
    return hints;
  end if;
  if when_locked = 'wait' then
    -- Two operations may end the last two runs of a schedule at once. The second waits here, and then sees what the
    -- first did.
    perform belfry.lock_overlap_queues(to_look_at);
  end if;
  for each_name in select distinct s.id from unnest(to_look_at) s(id) where s.id is not null loop
    if belfry.let_next_run_go(each_name, now_us / 1000, when_locked = 'leave') then
      hints := hints || 'runs'::belfry.hint;
    end if;
  end loop;
  return hints;
end $$;
