-- Writes what was decided of schedules in `core/schedules/declare.ts`, if they are still what was read. All of it or nothing.
--
-- Locks: the right to change schedules, together with others; the schedules that it makes by id, then those that exist;
-- their unclaimed ticks' keys, by name; the ticks; the schedules' queues.
-- Another transaction was faster: a mark differs, nothing is written, and the caller reads and decides again.
-- Versions: the store's clock in microseconds plus the count of versions, and above the schedule's last. With the count
-- alone, a restored backup or a failover would give a version out again that a client still holds for `ifVersion`. Versions
-- and the ids of definitions are taken when schedules are read (change.ts).
-- Reply lost: repeated, an equal definition changes nothing; a write over one version is the caller's to repeat.

-- A change without a mark creates its schedule; the others must meet the row that was read. `are_locked`: the
-- caller has locked the schedules. A tick that came in between would be waited for out of turn.
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
      -- Ticks that run go on; those between attempts are cancelled.
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

-- The id of a definition: its own count, below 22 random bits. Those of one batch lie together in the index.
create or replace function belfry.definition_id(count bigint, batch double precision) returns bigint immutable
  return (floor(batch * 4194304)::bigint << 31) + (count & 2147483647);

-- Locks schedules, and what was recorded of them and never claimed.
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

-- The right to change schedules alone, for a change that lost too often to others.
create or replace function belfry.lock_schedules_alone(schedule_ids text[]) returns void language plpgsql as $$
begin
  perform belfry.durable();
  perform pg_advisory_xact_lock(7237133, hashtext('belfry.schedules'));
  perform belfry.lock_schedules(schedule_ids);
end $$;
