/** How a run that has a key starts, or does not. The run's row is locked; its name is taken only if nobody else is at it. */
import { step } from './connection/sql-function.js'
import { firstDueOfKey, waitingForKey } from './waiting-line.js'

/**
 * Starts a run that has a key, or puts it aside. Answers what became of it (started, skipped, busy: it waits for a permit,
 * waits: behind an older one, or later: somebody else is at the name, or its holder just proves that it lives), which lanes it freed, and whether other runs became
 * ready by it.
 */
export const START_KEYED = step(
  `start_keyed(r belfry.runs, v_instance text, v_claim bigint, v_floor bigint, v_us bigint,
    out outcome text, out lanes text[], out readied boolean, out wakes integer)`,
  'record',
  `
declare
  v_now bigint;
  v_token bigint;
  v_room text[];
begin
  readied := false;
  lanes := '{}';
  wakes := 0;
  if not belfry.try_name(r.key) then
    outcome := 'later';
    return;
  end if;
  -- The time is read while the key is locked: a claim of many runs may have begun long before, and another instance may
  -- have started a run of this key since.
  v_us := greatest(v_us, belfry.now_us());
  v_now := v_us / 1000;
  select s.lanes, s.wakes into lanes, wakes from belfry.serve_waiters(r.key, v_us) s;
  if belfry.live_holders(r.key, v_now) >= r.key_limit then
    if r.attempt = 0 and not r.key_waits and not belfry.try_dedupe(r) then
      outcome := 'later';
    elsif r.attempt = 0 and not r.key_waits then
      perform belfry.end_run(r, 6, v_now, 'busy', null, null);
      lanes := lanes || r.schedule;
      wakes := wakes | 16;
      outcome := 'skipped';
    else
      perform belfry.make_wait(r.id, 3::smallint);
      outcome := 'busy';
    end if;
    readied := cardinality(lanes) > 0;
    return;
  end if;
  v_room := belfry.make_room(r.key, r.key_limit, v_now);
  lanes := lanes || v_room;
  readied := cardinality(lanes) > 0;
  if v_room is null then
    outcome := 'later';
    return;
  end if;
  if ${firstDueOfKey('r.key')} < r.id
    or exists (select 1 from belfry.runs where ${waitingForKey('r.key')} and id < r.id) then
    perform belfry.make_wait(r.id, 3::smallint);
    outcome := 'waits';
    return;
  end if;
  update belfry.names set last_token = greatest(greatest(last_token, coalesce(r.token, 0)) + 1, v_us, v_floor)
    where name = r.key returning last_token into v_token;
  update belfry.runs set running = true, attempt = attempt + 1, takeovers = takeovers + rescued::integer, rescued = false,
    token = v_token, started_at = v_now, instance = v_instance, claim = v_claim where id = r.id;
  insert into belfry.leases (name, holder, token, acquired_at, instance, run)
    values (r.key, format('run:%s:%s', r.id, v_token), v_token, v_now, v_instance, r.id);
  if r.key_limit > 1 and belfry.wake_runs(r.key, v_now) > 0 then
    readied := true;
    wakes := wakes | 2;
  end if;
  outcome := 'started';
end`,
)
