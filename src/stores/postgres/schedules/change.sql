-- Writes what was decided of schedules in `core/schedules/declare.ts`, if they are still what was read. All of it or nothing.
--
-- Locks: the right to change schedules, together with others; the schedules by id; their unclaimed ticks' keys, by name;
-- the ticks; those that wait.
-- Another transaction was faster: a mark differs, nothing is written, and the caller reads and decides again.
-- Versions: the store's clock in microseconds plus the count of versions, and above the schedule's last. With the count
-- alone, a restored backup or a failover would give a version out again that a client still holds for `ifVersion`.
-- Reply lost: repeated, an equal definition changes nothing; a write over one version is the caller's to repeat.

-- `are_locked`: the caller has locked the schedules. A tick that came in between would be waited for out of turn.
create or replace function belfry.change_schedules(
  new_schedules belfry.schedule_change[], changes belfry.schedule_change[], decided_at bigint, are_locked boolean,
  out created bigint[], out changed bigint[], out hints belfry.hint[]
) language plpgsql as $$
declare
  keys text[] := array[]::text[];
  schedule_ids text[] := array[]::text[];
  new_version bigint;
  old_version bigint;
  old_definition bigint;
  new_definition bigint;
  change belfry.schedule_change;
begin
  perform belfry.durable();
  perform pg_advisory_xact_lock_shared(7237133, hashtext('belfry.schedules'));
  hints := '{}';
  created := belfry.create_schedules(new_schedules, decided_at);
  changed := '{}';
  if cardinality(changes) = 0 then
    return;
  end if;
  if not are_locked then
    perform belfry.lock_schedules(array(select c.id from unnest(changes) c));
  end if;
  foreach change in array changes loop
    select s.version, s.definition into old_version, old_definition from belfry.schedules s where s.id = change.id and s.xmin::text = change.mark;
    if not found then
      perform belfry.try_again('the schedule was changed meanwhile');
    end if;
    keys := keys || belfry.take_back(
      change.id, change.unclaimed, change.forgotten_ticks, change.skipped_ticks, change.skip_reason, decided_at);
    insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
    select change.id, k.from_at, k.to_at, k.count, k.reason, decided_at
    from json_populate_recordset(null::belfry.planned_skip, change.skips) k;
    schedule_ids := schedule_ids || change.id;
    if change.removed then
      keys := keys || belfry.cancel_ticks(change.id, decided_at);
      delete from belfry.schedules s where s.id = change.id;
      delete from belfry.definitions d where d.id = old_definition;
      changed := changed || null::bigint;
      continue;
    end if;
    new_version := nextval('belfry.versions');
    new_definition := old_definition;
    if change.redefined then
      delete from belfry.definitions d where d.id = old_definition;
      new_definition := belfry.definition_id(new_version, random());
      perform belfry.define(change, new_definition);
    end if;
    new_version := greatest(old_version + 1, belfry.now_us() + new_version);
    update belfry.schedules s
    set version = new_version, definition = new_definition,
      place = nextval('belfry.places'), anchor = change.anchor, cursor = change.cursor, remaining = change.remaining,
      next_at = change.next_at, due_at = change.due_at, paused_at = change.paused_at, pause_note = change.pause_note,
      created_at = change.created_at, updated_at = change.updated_at, finished_at = change.finished_at,
      minds_overlap = change.minds_overlap, removable = change.removable
    where s.id = change.id;
    changed := changed || new_version;
  end loop;
  hints := array['settled']::belfry.hint[] || belfry.pass_on(keys, schedule_ids, decided_at * 1000, 'give up');
end $$;

-- Creates schedules, all at once, and returns their versions. If another transaction has created one of them meanwhile,
-- nothing is written.
create or replace function belfry.create_schedules(new_schedules belfry.schedule_change[], decided_at bigint)
returns bigint[] language plpgsql as $$
declare
  versions bigint[];
  now_us bigint := belfry.now_us();
  batch double precision := random();
begin
  if cardinality(new_schedules) = 0 then
    return array[]::bigint[];
  end if;
  with given as materialized (
    select n.*, now_us + n.count as version, belfry.definition_id(n.count, batch) as definition
    from (
      select u.*, nextval('belfry.versions') as count, nextval('belfry.places') as place
      from unnest(new_schedules) with ordinality u) n
  ), defined as (
    insert into belfry.definitions (id, schedule, app, body, payload, target, options, priority, keep, key, key_limit,
      key_when_busy, unstamped)
    select g.definition, g.id, g.app, g.body, g.payload, g.target, g.options, g.priority, g.keep, g.key, g.key_limit,
      g.key_when_busy, g.unstamped
    from given g
  ), made as (
    insert into belfry.schedules (id, version, definition, place, created_at, updated_at, anchor, cursor, remaining,
      next_at, due_at, minds_overlap, removable)
    select g.id, g.version, g.definition, g.place, decided_at, decided_at, g.anchor, g.cursor, g.remaining, g.next_at,
      g.due_at, g.minds_overlap, g.removable
    from given g order by g.id collate "C"
  )
  select array_agg(g.version order by g.ordinality) into versions from given g;
  return versions;
end $$;

-- The id of a definition: its own count, below 22 random bits. Those of one batch lie together in the index.
create or replace function belfry.definition_id(count bigint, batch double precision) returns bigint language sql immutable
  as $$ select (floor(batch * 4194304)::bigint << 31) + (count & 2147483647) $$;

create or replace function belfry.define(change belfry.schedule_change, number bigint) returns void language plpgsql as $$
begin
  insert into belfry.definitions (id, schedule, app, body, payload, target, options, priority, keep, key, key_limit,
    key_when_busy, unstamped)
  values (number, change.id, change.app, change.body, change.payload, change.target, change.options, change.priority,
    change.keep, change.key, change.key_limit, change.key_when_busy, change.unstamped);
end $$;

-- Locks schedules, and what was recorded of them and never claimed.
create or replace function belfry.lock_schedules(schedule_ids text[]) returns void language plpgsql as $$
declare
  keys text[];
begin
  perform 1 from belfry.schedules s where s.id = any (schedule_ids) order by s.id for update;
  keys := array(select t.key from belfry.idle_ticks(schedule_ids) t where t.key is not null);
  perform belfry.lock_names(keys);
  perform belfry.lock_runs(array(select t.id from belfry.idle_ticks(schedule_ids) t), keys);
  perform 1 from belfry.runs r
  where r.schedule = any (schedule_ids) and r.state < 'running' and r.waits_for = 'overlap'
  order by r.schedule, r.id for update;
end $$;

-- The right to change schedules alone, for a change that lost too often to others.
create or replace function belfry.lock_schedules_alone(schedule_ids text[]) returns void language plpgsql as $$
begin
  perform belfry.durable();
  perform pg_advisory_xact_lock(7237133, hashtext('belfry.schedules'));
  perform belfry.lock_schedules(schedule_ids);
end $$;
