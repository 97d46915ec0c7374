-- Starts runs that are ready, highest priority first, then the oldest.
--
-- - Two claims at once: each skips the runs that the other has locked, so they take different runs.
-- - Reply lost: the claim is sent again with the same number, and returns the runs that it started. If the first try is
--   still executing, the second waits for its end. unheard-claims.sql explains this recovery.
-- - The instance is declared dead meanwhile: both transactions lock the instance's row, so one happens after the other.
--   A claim locks it before any run; once a claim has locked a run, it waits for nothing.
-- - Thousands of runs behind one busy key: a claim changes a bounded number of them to `waiting`, where no claim looks,
--   and asks to be called again.
create or replace function belfry.claim_runs(
  instance_id text, claim_number bigint, run_limit integer, targets text[], rooms integer[], least_token bigint,
  out now_ms bigint, out next_ready_at bigint, out hints belfry.hint[], out skipped text[], out claimed belfry.runs[]
) language plpgsql as $$
declare
  max_set_aside constant integer := 2000;
  retry_ms constant integer := 20;
  now_us bigint := belfry.now_us();
  room integer[] := rooms;
  is_alive boolean;
  started_ids bigint[] := array[]::bigint[];
  plain_ids bigint[];
  waiting_ids bigint[];
  -- Runs that other transactions have locked. A later claim looks at them again.
  skipped_ids bigint[] := array[]::bigint[];
  busy_keys text[] := array[]::text[];
  set_aside integer := 0;
  rounds integer := 0;
  look_again boolean;
  freed_keys text[] := array[]::text[];
  freed_schedules text[] := array[]::text[];
  candidate record;
  step record;
  skip text;
begin
  perform belfry.durable();
  hints := '{}';
  skipped := '{}';
  now_ms := now_us / 1000;
  perform pg_advisory_xact_lock(hashtextextended(instance_id || ' ' || claim_number, 7237133));
  look_again := exists (select 1 from belfry.ready_levels(targets) level where level.first_ready_at <= now_ms);
  if look_again then
    perform 1 from belfry.instances i where i.id = instance_id for key share;
  end if;
  -- The clock is read again, because this transaction may have waited for the locks.
  now_us := belfry.now_us();
  now_ms := now_us / 1000;
  is_alive := exists (
    select 1 from belfry.instances i where i.id = instance_id and not i.dead and i.expires_at > now_ms);
  look_again := look_again
    and exists (select 1 from belfry.instances i where i.id = instance_id and claim_number > i.claims_settled)
    and not exists (select 1 from belfry.runs r
      where r.instance = instance_id and r.claim = claim_number and r.state = 'running')
    and not exists (select 1 from belfry.settings s where s.name = 'frozen');

  -- A round may set runs aside: skipped, or waiting for their key. The next round then looks for other runs in their
  -- place.
  while is_alive and look_again and cardinality(started_ids) < run_limit and set_aside < max_set_aside loop
    look_again := false;
    rounds := rounds + 1;
    plain_ids := '{}';
    waiting_ids := '{}';
    for candidate in
      select * from belfry.next_runs(targets, room, run_limit - cardinality(started_ids), skipped_ids, now_ms)
    loop
      exit when cardinality(started_ids) >= run_limit;
      continue when room[candidate.place] <= 0;
      if candidate.is_late then
        skip := belfry.skip_late_run(candidate.id, now_ms);
        if skip is not null then
          skipped := skipped || skip;
          freed_keys := freed_keys || candidate.key;
          freed_schedules := freed_schedules || candidate.schedule;
          hints := hints || 'settled'::belfry.hint;
          set_aside := set_aside + 1;
          look_again := true;
        else
          skipped_ids := skipped_ids || candidate.id;
        end if;
      elsif candidate.key is null then
        plain_ids := plain_ids || candidate.id;
        started_ids := started_ids || candidate.id;
        room[candidate.place] := room[candidate.place] - 1;
      elsif candidate.key = any (busy_keys) and candidate.waits_when_busy then
        waiting_ids := waiting_ids || candidate.id;
        set_aside := set_aside + 1;
        look_again := true;
      else
        select * into step from belfry.start_keyed_run(candidate.id, instance_id, claim_number, least_token, now_us);
        freed_schedules := freed_schedules || step.freed_schedules;
        hints := hints || step.hints;
        if step.outcome = 'started' then
          room[candidate.place] := room[candidate.place] - 1;
          started_ids := started_ids || candidate.id;
        elsif step.outcome = 'later' then
          skipped_ids := skipped_ids || candidate.id;
        else
          set_aside := set_aside + 1;
          look_again := true;
          if step.outcome = 'busy' and candidate.key_limit = 1 then
            busy_keys := busy_keys || candidate.key;
          end if;
          if step.outcome = 'skipped' then
            skipped := skipped || step.skipped;
            freed_keys := freed_keys || candidate.key;
          end if;
        end if;
        -- A run that has just become ready may come before the other candidates, so the next round selects them again.
        if step.readied then
          freed_keys := freed_keys || candidate.key;
          look_again := true;
          exit;
        end if;
      end if;
    end loop;
    if cardinality(plain_ids) > 0 then
      perform belfry.start_runs(plain_ids, instance_id, claim_number, least_token, now_us);
    end if;
    if cardinality(waiting_ids) > 0 then
      perform belfry.wait_for_key(waiting_ids);
    end if;
  end loop;

  if cardinality(freed_keys) > 0 or cardinality(freed_schedules) > 0 then
    perform belfry.lock_names(freed_keys);
    hints := hints || belfry.pass_on(freed_keys, freed_schedules, now_us, 'wait');
  end if;
  -- All running runs of this claim, in the order in which they were started, including those that an earlier try of
  -- this claim started. One round starts runs in order of priority and age. Only after several rounds are they sorted
  -- by their places in `started_ids`, because that takes quadratic time.
  claimed := array(
    select r from belfry.runs r
    where is_alive and r.instance = instance_id and r.claim = claim_number and r.state = 'running'
    order by case when rounds > 1 then array_position(started_ids, r.id) end, r.priority desc, r.ready_at, r.id);
  next_ready_at := case
    when set_aside >= max_set_aside then now_ms
    else least(
      (select min(first_after.ready_at) from belfry.ready_levels(targets) level cross join lateral (
        select r.ready_at from belfry.runs r
        where r.state = 'ready' and r.target = level.target and r.priority = level.priority and r.ready_at > now_ms
        order by r.ready_at limit 1) first_after),
      case when cardinality(skipped_ids) > 0 then now_ms + retry_ms end) end;
end $$;

-- The priorities at which each target has ready runs, and the earliest `ready_at` of each. Steps from one priority to
-- the next lower one, so that it never reads runs that are not due. `next_runs` starts to read at that `ready_at`,
-- because before it the index is full of entries of runs that have started since the last vacuum.
create or replace function belfry.ready_levels(targets text[])
returns table (place integer, target text, priority integer, first_ready_at bigint) language plpgsql rows 10 as $$
begin
  return query
  with recursive level (target, place, priority, first_ready_at) as (
    select wanted.target, wanted.place, highest.priority, highest.ready_at
    from unnest(targets) with ordinality as wanted(target, place) cross join lateral (
      select r.priority, r.ready_at from belfry.runs r
      where r.state = 'ready' and r.target = wanted.target
      order by r.priority desc, r.ready_at limit 1) highest
    union all
    select level.target, level.place, lower.priority, lower.ready_at
    from level cross join lateral (
      select r.priority, r.ready_at from belfry.runs r
      where r.state = 'ready' and r.target = level.target and r.priority < level.priority
      order by r.priority desc, r.ready_at limit 1) lower
  )
  select level.place::integer, level.target, level.priority, level.first_ready_at from level;
end $$;

-- The runs to start next: due runs in order, of each target as many as there is room for. It locks them, and skips runs
-- that another transaction has locked.
create or replace function belfry.next_runs(
  targets text[], room integer[], run_limit integer, passed_over bigint[], now_ms bigint
) returns table (place integer, id bigint, key text, key_limit integer, schedule text, is_late boolean, waits_when_busy boolean)
language plpgsql as $$
begin
  return query
  select due.place, due.id, due.key, due.key_limit, due.schedule,
    due.attempt = 0 and coalesce(due.start_by < now_ms, false), due.attempt > 0 or due.key_when_busy = 'wait'
  from (
    select level.place, r.*, row_number() over (partition by level.place order by r.priority desc, r.ready_at, r.id) as nth
    from belfry.ready_levels(targets) level cross join lateral (
      select u.id, u.priority, u.ready_at, u.start_by, u.attempt, u.key, u.key_limit, u.key_when_busy, u.schedule
      from belfry.runs u
      where u.state = 'ready' and u.target = level.target and u.priority = level.priority
        and u.ready_at >= level.first_ready_at and u.ready_at <= now_ms
      order by u.ready_at, u.id
      limit least(room[level.place], run_limit) + cardinality(passed_over)
      for update skip locked) r
    where room[level.place] > 0 and level.first_ready_at <= now_ms and r.id <> all (passed_over)
  ) due
  where due.nth <= room[due.place]
  order by due.priority desc, due.ready_at, due.id
  limit run_limit;
end $$;

-- A run that a claim skipped, as JSON for the claim's result.
create or replace function belfry.skipped_run(run belfry.runs, why belfry.skip_reason) returns text immutable language sql
  as $$ select json_build_object('id', belfry.run_id(run.id, run.mark), 'target', run.target, 'origin', run.origin,
    'schedule', run.schedule, 'tick', run.tick, 'reason', why)::text $$;

-- Skips a run that is past its `start_by`, and returns it as JSON. Returns null if another transaction has locked the
-- run's key or dedupe key.
create or replace function belfry.skip_late_run(run_id bigint, now_ms bigint) returns text language plpgsql as $$
declare
  run belfry.runs;
  why belfry.skip_reason;
begin
  select * into run from belfry.runs r where r.id = run_id;
  if run.key is not null and not belfry.try_name(run.key) or not belfry.try_dedupe(run) then
    return null;
  end if;
  why := case when run.by_deadline then 'deadline'::belfry.skip_reason else 'missed' end;
  perform belfry.end_run(run, 'skipped', now_ms, why);
  return belfry.skipped_run(run, why);
end $$;

-- Starts a run that has a key, or sets it aside. `readied`: other runs became ready on the way. `outcome`:
-- - started
-- - skipped: the key is busy, and the run does not wait for it
-- - busy: the key is busy, and the run now waits for a permit
-- - waits: the run now waits behind an older run of its key
-- - later: another transaction has locked the key, or the run's dedupe key, or the lease of an expired holder
create or replace function belfry.start_keyed_run(
  run_id bigint, instance_id text, claim_number bigint, least_token bigint, claim_us bigint,
  out outcome text, out freed_schedules text[], out readied boolean, out hints belfry.hint[], out skipped text
) language plpgsql as $$
declare
  now_us bigint;
  now_ms bigint;
  run belfry.runs;
  token bigint;
  room text[];
  passed record;
begin
  freed_schedules := '{}';
  readied := false;
  hints := '{}';
  select * into run from belfry.runs r where r.id = run_id;
  if not belfry.try_name(run.key) then
    outcome := 'later';
    return;
  end if;
  -- The clock is read after the key is locked. This claim may have begun long before, and another instance may have
  -- started a run of the key since.
  now_us := greatest(claim_us, belfry.now_us());
  now_ms := now_us / 1000;
  select * into passed from belfry.pass_to_waiters(run.key, now_us);
  freed_schedules := passed.schedules;
  if cardinality(passed.granted) > 0 then
    hints := array['leases', 'granted']::belfry.hint[];
  end if;
  if belfry.live_holders(run.key, now_ms) >= run.key_limit then
    if run.attempt > 0 or run.key_when_busy = 'wait' then
      perform belfry.wait_for_key(array[run.id]);
      outcome := 'busy';
    elsif belfry.try_dedupe(run) then
      perform belfry.end_run(run, 'skipped', now_ms, 'busy');
      freed_schedules := freed_schedules || run.schedule;
      hints := hints || 'settled'::belfry.hint;
      skipped := belfry.skipped_run(run, 'busy');
      outcome := 'skipped';
    else
      outcome := 'later';
    end if;
    readied := cardinality(freed_schedules) > 0;
    return;
  end if;
  room := belfry.make_room(run.key, run.key_limit, now_ms);
  freed_schedules := freed_schedules || room;
  readied := cardinality(freed_schedules) > 0;
  if room is null then
    outcome := 'later';
    return;
  end if;
  if belfry.oldest_due_of_key(run.key, now_ms) < run.id
    or coalesce((belfry.oldest_waiting_for_key(run.key)).id < run.id, false) then
    perform belfry.wait_for_key(array[run.id]);
    outcome := 'waits';
    return;
  end if;
  token := belfry.next_token(run.key, greatest(least_token, coalesce(run.token, 0) + 1), now_us);
  perform belfry.start_runs(array[run.id], instance_id, claim_number, token, now_us);
  insert into belfry.leases (name, holder, token, acquired_at, instance, run)
  values (run.key, format('run:%s:%s', run.id, token), token, now_ms, instance_id, run.id);
  if run.key_limit > 1 and belfry.wake_runs(run.key, now_ms) then
    readied := true;
    hints := hints || 'runs'::belfry.hint;
  end if;
  outcome := 'started';
end $$;
