-- Writes the changes of schedules that `core/schedules/declare.ts` decided on, if the schedules are still as they were
-- read. Writes all changes or none.
--
-- Locks: the advisory lock for changing schedules, shared; new schedules by id, then existing ones; the keys of their
-- unclaimed ticks, by name; the ticks; the schedules' overlap queues.
-- Another transaction was faster: a mark differs, nothing is written, and the caller reads and decides again.
-- Versions: a new version is the store's clock in microseconds plus a counter, and higher than the schedule's last
-- version. With the counter alone, a restored backup or a failover could issue a version a second time that a client
-- still holds for `ifVersion`. Versions and the ids of definitions are issued when schedules are read (change.ts).
-- Reply lost: repeating a put with an equal definition changes nothing. A write with `ifVersion` is left to its caller
-- to repeat.

-- A change without a mark creates its schedule; every other change must find the row version that was read.
-- `are_locked`: the caller has locked the schedules. They are not locked a second time, because that might wait,
-- against the lock order, for a tick that appeared since.
create or replace function belfry.change_schedules(
  changes belfry.schedule_change[], decided_at bigint, are_locked boolean, out hints belfry.hint[]
) language plpgsql as $$
declare
  known_ids text[] := array(select c.id from unnest(changes) c where c.mark is not null);
  keys text[] := array[]::text[];
  old_definition bigint;
  created integer;
  change belfry.schedule_change;
begin
  perform belfry.durable();
  perform pg_advisory_xact_lock_shared(7237133, hashtext('belfry.schedules'));
  hints := '{}';
  insert into belfry.schedules (id, version, definition, place, anchor, cursor, remaining, next_at, due_at, paused_at,
    pause_note, created_at, updated_at, finished_at, minds_overlap, removable)
  select c.id, c.version, c.definition, nextval('belfry.places'), c.anchor, c.cursor, c.remaining, c.next_at, c.due_at,
    c.paused_at, c.pause_note, c.created_at, c.updated_at, c.finished_at, c.minds_overlap, c.removable
  from unnest(changes) c where c.mark is null order by c.id collate "C"
  on conflict do nothing;
  get diagnostics created = row_count;
  if created < cardinality(changes) - cardinality(known_ids) then
    perform belfry.try_again('a schedule was created meanwhile');
  end if;
  if cardinality(known_ids) > 0 and not are_locked then
    perform belfry.lock_schedules(known_ids);
  end if;
  foreach change in array changes loop
    continue when change.mark is null;
    select s.definition into old_definition from belfry.schedules s where s.id = change.id and s.xmin::text = change.mark;
    if not found then
      perform belfry.try_again('the schedule was changed meanwhile');
    end if;
    keys := keys || belfry.take_back(
      change.id, change.unclaimed, change.forgotten_ticks, change.skipped_ticks, change.skip_reason, decided_at);
    insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
    select change.id, k.from_at, k.to_at, k.count, k.reason, decided_at
    from json_populate_recordset(null::belfry.planned_skip, change.skips) k;
    if change.removed then
      -- Running ticks go on; ticks between two attempts are cancelled.
      keys := keys || belfry.end_idle_runs(
        array(select t.id from belfry.idle_ticks(array[change.id]) t where t.attempt > 0), 'cancelled', null, decided_at);
      delete from belfry.schedules s where s.id = change.id;
    else
      update belfry.schedules s
      set version = change.version, definition = change.definition, place = nextval('belfry.places'), anchor = change.anchor,
        cursor = change.cursor, remaining = change.remaining, next_at = change.next_at, due_at = change.due_at,
        paused_at = change.paused_at, pause_note = change.pause_note, created_at = change.created_at,
        updated_at = change.updated_at, finished_at = change.finished_at, minds_overlap = change.minds_overlap,
        removable = change.removable
      where s.id = change.id;
    end if;
    if change.removed or change.redefined then
      delete from belfry.definitions d where d.id = old_definition;
    end if;
  end loop;

  insert into belfry.definitions (id, schedule, app, body, payload, target, options, priority, keep, key, key_limit,
    key_when_busy, unstamped)
  select c.definition, c.id, c.app, c.body, c.payload, c.target, c.options, c.priority, c.keep, c.key, c.key_limit,
    c.key_when_busy, c.unstamped
  from unnest(changes) c where c.redefined;
  if cardinality(known_ids) > 0 then
    hints := array['settled']::belfry.hint[] || belfry.pass_on(keys, known_ids, decided_at * 1000, 'give up');
  end if;
end $$;

-- The id of a definition: a counter in the low 31 bits, 22 random bits above it. The definitions of one batch have the
-- same random bits, so they lie together in the index.
create or replace function belfry.definition_id(count bigint, batch double precision) returns bigint immutable
  return (floor(batch * 4194304)::bigint << 31) + (count & 2147483647);

-- Locks schedules, their recorded ticks that are not running, and those ticks' keys.
create or replace function belfry.lock_schedules(schedule_ids text[]) returns void language plpgsql as $$
declare
  keys text[];
begin
  perform 1 from belfry.schedules s where s.id = any (schedule_ids) order by s.id for update;
  keys := array(select t.key from belfry.idle_ticks(schedule_ids) t where t.key is not null);
  perform belfry.lock_names(keys);
  perform belfry.lock_runs(array(select t.id from belfry.idle_ticks(schedule_ids) t), keys);
  perform belfry.lock_overlap_queues(schedule_ids);
end $$;

-- Takes the exclusive right to change schedules, for a change that has lost too often to other transactions. Then locks
-- the schedules.
create or replace function belfry.lock_schedules_alone(schedule_ids text[]) returns void language plpgsql as $$
begin
  perform belfry.durable();
  perform pg_advisory_xact_lock(7237133, hashtext('belfry.schedules'));
  perform belfry.lock_schedules(schedule_ids);
end $$;
