-- Creates runs: all or none. A batch of runs that nothing can refuse is one insert. All other runs are checked one by
-- one: a dedupe key is reserved by its row, and an exclusive key is checked while its name is locked. A run that waits
-- for others of its schedule locks those, so that none of them can end without seeing it.
--
-- Locks: the schedules of runs with an overlap policy, so that no tick and no other such run is recorded at the same
-- time; the keys by name; the schedules' runs by id; dedupe keys; the schedules' overlap queues.
-- Reply lost: a repetition with a dedupe key returns 'duplicate'; without one, the caller decides.
create or replace function belfry.enqueue_runs(new_runs belfry.new_run[])
returns table (outcome text, run text) language plpgsql as $$
declare
  now_us bigint;
  now_ms bigint;
  is_plain boolean;
  new_id bigint;
  new_mark bigint;
  found_id bigint;
  ready_time bigint;
  earlier bigint;
  held_schedule text;
  held_run bigint;
  keys text[] := array[]::text[];
  freed_schedules text[] := array[]::text[];
  schedule_ids text[];
  cancelling_ids text[];
  locked_keys text[];
  way record;
  given record;
begin
  select bool_and(n.dedupe is null and not n.check_key and n.origin <> 'backfill' and n.overlap = 'allow'),
      coalesce(array_agg(distinct n.schedule) filter (where n.overlap <> 'allow' and n.schedule is not null), '{}'),
      coalesce(array_agg(distinct n.schedule)
        filter (where n.overlap = 'cancel-running' and n.schedule is not null), '{}')
    into is_plain, schedule_ids, cancelling_ids from unnest(new_runs) n;
  -- Only runs that are checked against others need read committed: the check must see what the others' transactions
  -- committed while this one waited for their locks.
  perform belfry.durable((select not bool_or(n.check_key or n.overlap <> 'allow') from unnest(new_runs) n));

  if is_plain then
    now_ms := belfry.now_us() / 1000;
    perform belfry.make_names(array(select n.key from unnest(new_runs) n));
    return query
    insert into belfry.runs as made (id, target, options, origin, schedule, tick, backfill, payload, priority, keep, key,
      key_limit, key_when_busy, unstamped, state, waits_for, engaged, created_at, ready_at)
    select nextval('belfry.run_ids'), n.target, n.options, n.origin, n.schedule,
      coalesce(n.tick, case when n.origin = 'trigger' then now_ms end), n.backfill, n.payload, n.priority, n.keep, n.key,
      n.key_limit, n.key_when_busy, n.unstamped, case when n.unstamped then 'waiting' else 'ready' end::belfry.run_state,
      case when n.unstamped then 'stamp' else 'nothing' end::belfry.wait_reason, n.unstamped, now_ms,
      coalesce(n.ready_at, now_ms + n.delay_ms)
    from unnest(new_runs) with ordinality n order by n.ordinality
    returning 'enqueued', belfry.run_id(made.id, made.mark);
    return;
  end if;

  if cardinality(schedule_ids) > 0 then
    perform 1 from belfry.schedules s where s.id = any (schedule_ids) order by s.id for update;
  end if;
  perform belfry.make_names(array(select n.key from unnest(new_runs) n));
  locked_keys := array(select n.key from unnest(new_runs) n where n.check_key)
    || array(select distinct r.key from belfry.startable_runs(schedule_ids) r where r.key is not null)
    || array(select distinct r.key from belfry.open_runs(cancelling_ids) r where r.key is not null);
  perform belfry.lock_names(locked_keys);
  if cardinality(schedule_ids) > 0 then
    now_ms := belfry.now_us() / 1000;
    perform belfry.lock_runs(
      array(select r.id from belfry.startable_runs(schedule_ids) r where r.engaged or r.ready_at <= now_ms), locked_keys);
  end if;
  -- A free dedupe key gets a row that has already expired, so that this transaction has a row to lock.
  insert into belfry.dedupes as d (target, dedupe, run, mark, until)
  select wanted.target, wanted.dedupe, 0, 0, 0
  from (
    select n.target collate "C" as target, n.dedupe collate "C" as dedupe from unnest(new_runs) n where n.dedupe is not null
    union select r.target, r.dedupe from belfry.open_runs(cancelling_ids) r where r.dedupe is not null) wanted
  order by wanted.target, wanted.dedupe
  on conflict on constraint dedupes_pkey do update set run = d.run where false;
  if cardinality(cancelling_ids) > 0 then
    perform belfry.lock_overlap_queues(cancelling_ids);
  end if;

  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  for given in select n.* from unnest(new_runs) with ordinality n order by n.ordinality loop
    new_id := nextval('belfry.run_ids');
    new_mark := floor(random() * 281474976710656);
    ready_time := coalesce(given.ready_at, now_ms + given.delay_ms);
    found_id := null;
    if given.dedupe is not null then
      insert into belfry.dedupes as d (target, dedupe, run, mark, until)
      values (given.target, given.dedupe, new_id, new_mark, null)
      on conflict on constraint dedupes_pkey do update set run = excluded.run, mark = excluded.mark, until = null
      where d.until <= now_ms;
      if not found then
        return query
        select 'duplicate', belfry.run_id(d.run, d.mark) from belfry.dedupes d
        where d.target = given.target and d.dedupe = given.dedupe;
        continue;
      end if;
    end if;
    if given.origin = 'backfill' then
      select r.id into found_id from belfry.runs r
      where r.schedule = given.schedule and r.tick = given.tick and coalesce(r.backfill, '') = coalesce(given.backfill, '')
        and r.origin in ('tick', 'backfill') and r.origin = 'backfill';
      if found_id is not null then
        delete from belfry.dedupes d where d.target = given.target and d.dedupe = given.dedupe;
        return query select 'duplicate', belfry.id_of_run(found_id);
        continue;
      end if;
    end if;
    if given.check_key and given.key is not null then
      found_id := belfry.busy_with(given.key, given.key_limit, ready_time, now_ms);
    end if;
    earlier := null;
    if given.overlap not in ('allow', 'cancel-running') and given.schedule is not null and found_id is null then
      -- This transaction has locked the earlier run, so that cannot end before the commit. All later runs of the batch
      -- wait for it, too.
      if held_run is null or given.schedule <> held_schedule then
        held_schedule := given.schedule;
        held_run := belfry.hold_earlier(given.schedule, now_ms);
      end if;
      earlier := held_run;
      if given.overlap = 'skip' then
        found_id := earlier;
      elsif given.overlap = 'queue-one' then
        found_id := (belfry.oldest_waiting_for_overlap(given.schedule)).id;
      end if;
    end if;
    if found_id is not null then
      delete from belfry.dedupes d where d.target = given.target and d.dedupe = given.dedupe and d.run = new_id;
      return query select 'busy', belfry.id_of_run(found_id);
      continue;
    end if;
    if given.overlap = 'cancel-running' and given.schedule is not null then
      select * into way from belfry.make_way(given.schedule, now_ms);
      keys := keys || way.keys;
      freed_schedules := freed_schedules || given.schedule;
      earlier := belfry.hold_earlier(given.schedule, now_ms);
      held_run := null;
    end if;
    insert into belfry.runs (id, mark, target, options, origin, schedule, tick, backfill, payload, priority, keep, key,
      key_limit, key_when_busy, unstamped, dedupe, dedupe_ms, state, waits_for, engaged, created_at, ready_at)
    values (new_id, new_mark, given.target, given.options, given.origin, given.schedule,
      coalesce(given.tick, case when given.origin = 'trigger' then now_ms end), given.backfill, given.payload,
      given.priority, given.keep, given.key, given.key_limit, given.key_when_busy, given.unstamped, given.dedupe,
      given.dedupe_ms, case when earlier is not null or given.unstamped then 'waiting' else 'ready' end::belfry.run_state,
      case when earlier is not null then 'overlap' when given.unstamped then 'stamp' else 'nothing' end::belfry.wait_reason,
      earlier is not null or given.unstamped, now_ms, ready_time);
    return query select 'enqueued', belfry.run_id(new_id, new_mark);
  end loop;
  perform belfry.pass_on(keys, freed_schedules, now_us, 'give up');
end $$;

-- The id of the run with this number. If the run has been deleted since, the number itself.
create or replace function belfry.id_of_run(number bigint) returns text language plpgsql as $$
begin
  return coalesce((select belfry.run_id(r.id, r.mark) from belfry.runs r where r.id = number), number::text);
end $$;

-- All unfinished runs of schedules.
create or replace function belfry.open_runs(schedule_ids text[]) returns setof belfry.runs language plpgsql rows 10 as $$
begin
  return query
  select r.* from unnest(schedule_ids) s(id)
  cross join lateral (select * from belfry.runs where schedule = s.id and state < 'succeeded' offset 0) r;
end $$;

-- `open_runs` without those that wait for others of their schedule, of which there may be very many.
create or replace function belfry.startable_runs(schedule_ids text[]) returns setof belfry.runs language plpgsql rows 10 as $$
begin
  return query
  select r.* from unnest(schedule_ids) s(id)
  cross join lateral (
    select * from belfry.runs
    where schedule = s.id and state < 'succeeded' and waits_for in ('nothing', 'stamp', 'key') offset 0) r;
end $$;

-- How many unfinished runs of a key are due or have begun. Counting stops at `up_to`.
create or replace function belfry.engaged_runs(wanted text, up_to integer, now_ms bigint) returns integer
language plpgsql as $$
begin
  return (
    select count(*) from (
      select 1 from belfry.runs r
      where r.key = wanted and r.state < 'succeeded' and (r.attempt > 0 or r.ready_at <= now_ms)
      limit up_to) engaged);
end $$;

-- The run that keeps a key busy, or null. For a run that is ready now, the key is busy if `up_to` of its runs are due
-- or executing. For one that is ready later, it is busy if another run is ready at the same instant. The executing run
-- is found by its lease, because searching for it among the key's runs, which may be many, takes longer.
create or replace function belfry.busy_with(wanted text, up_to integer, ready_time bigint, now_ms bigint) returns bigint
language plpgsql as $$
begin
  if ready_time > now_ms then
    return (
      select r.id from belfry.runs r
      where r.key = wanted and r.state = 'ready' and r.attempt = 0 and r.ready_at = ready_time order by r.id limit 1);
  end if;
  if belfry.engaged_runs(wanted, up_to, now_ms) < up_to then
    return null;
  end if;
  return coalesce(
    (select l.run from belfry.leases l where l.name = wanted and l.run is not null order by l.run limit 1),
    least(belfry.oldest_due_of_key(wanted, now_ms), (belfry.oldest_waiting_for_key(wanted)).id),
    (select r.id from belfry.runs r where r.key = wanted and r.state < 'succeeded' and r.attempt > 0 order by r.id limit 1),
    (select r.id from belfry.runs r where r.key = wanted and r.state = 'waiting' and r.ready_at <= now_ms
      order by r.id limit 1));
end $$;

-- Locks the runs of a schedule that a new run waits for, and returns the oldest unfinished one. Does not wait for
-- locks: the caller has locked most of the runs already. If another transaction has locked one, the operation is tried
-- again.
create or replace function belfry.hold_earlier(schedule_id text, now_ms bigint) returns bigint language plpgsql as $$
declare
  held integer;
  busy integer;
  oldest bigint;
begin
  select count(*) into held from (
    select 1 from belfry.runs r
    where r.schedule = schedule_id and r.state < 'succeeded' and r.waits_for in ('nothing', 'stamp', 'key')
      and (r.engaged or r.ready_at <= now_ms)
    order by r.id for no key update skip locked) each_run;
  select count(*), min(u.id) into busy, oldest from belfry.startable_runs(array[schedule_id]) u
  where u.engaged or u.ready_at <= now_ms;
  if held < busy then
    perform belfry.try_again('a run came in between');
  end if;
  return least(oldest, (belfry.oldest_waiting_for_overlap(schedule_id)).id);
end $$;
