/**
 * Lease names: how many hold one, who is next, and the handing on that every operation ends with.
 *
 * A holder whose time is over is not counted, but it is only removed by somebody who takes its place. Until then it may
 * renew. If it was a run's attempt, the run is fenced in that same step. The lease of a run's key has no time of its
 * own: it runs out with the instance's.
 *
 * Whoever looks at a name holds its row, so that all that concerns one name happens one after the other. `lock-order.ts`
 * says when it may be locked.
 */

import { gone } from './connection/proof-sql.js'
import { step } from './connection/sql-function.js'
import { WAKE_GRANTED, WAKE_LEASES, WAKE_RUNS } from './connection/wakes.js'
import { giveUp } from './lock-order.js'
import { firstDueOfKey, waitingForKey, waitingForLane } from './waiting-line.js'

/** When a lease `l` runs out, with its instance as `i`. */
export const LEASE_EXPIRY = 'case when l.run is null then l.expires_at else coalesce(i.expires_at, 0) end'
/** The same, and long ago for a holder that is proven to be gone. One that gave back early holds on to the end. */
export const EXPIRY = `case when ${gone('case when not l.released then coalesce(l.proof, i.proof) end')} then 0
  else ${LEASE_EXPIRY} end`
export const LEASE_INSTANCE = 'left join belfry.instances i on l.run is not null and i.id = l.instance'

const LIVE_HOLDERS = step(
  'live_holders(v_name text, v_now bigint)',
  'integer',
  `
begin
  return (select count(*) from belfry.leases l ${LEASE_INSTANCE} where l.name = v_name and ${EXPIRY} > v_now);
end`,
)

/**
 * Removes holders whose time is over, the longest first, until there is room for one more. Answers lanes to look at, or
 * null when there is no room after all: a holder that is just now proving that it lives is not removed. Its renewal has
 * its lease's row, its beat its instance's; whoever of the two comes second sees what the first has done. Nor is one whose
 * run, or its dedupe key, somebody is at: nobody waits here.
 */
const MAKE_ROOM = step(
  'make_room(v_name text, v_permits integer, v_now bigint)',
  'text[]',
  `
declare
  v_lanes text[] := '{}';
  v_surplus integer;
  v_lease record;
  r belfry.runs;
begin
  select count(*) - v_permits + 1 into v_surplus from belfry.leases where name = v_name;
  if v_surplus <= 0 then return v_lanes; end if;
  for v_lease in select l.holder, l.run, l.instance from belfry.leases l ${LEASE_INSTANCE}
    where l.name = v_name and ${EXPIRY} <= v_now order by ${EXPIRY}, l.seq for update of l skip locked
  loop
    if v_lease.run is not null then
      if exists (select 1 from belfry.instances where id = v_lease.instance) then
        perform 1 from belfry.instances where id = v_lease.instance and (expires_at <= v_now or ${gone('proof')})
          for update skip locked;
        continue when not found;
      end if;
      select * into r from belfry.runs where id = v_lease.run for update skip locked;
      if found then
        continue when not belfry.try_dedupe(r);
        perform belfry.take_over(r, v_now, true);
        v_lanes := v_lanes || r.schedule;
      else
        continue when exists (select 1 from belfry.runs where id = v_lease.run);
      end if;
    end if;
    delete from belfry.leases where name = v_name and holder = v_lease.holder;
    v_surplus := v_surplus - 1;
    exit when v_surplus <= 0;
  end loop;
  return case when v_surplus <= 0 then v_lanes end;
end`,
)

/**
 * A lock's new lease. Answers lanes to look at, or null when there was no room for it. Its number is below those of all
 * who are in line: whoever passes it on looks for the next one from there.
 */
const GRANT_LOCK = step(
  `grant_lock(v_name text, v_holder text, v_ttl bigint, v_permits integer, v_instance text, v_proof integer,
    v_floor bigint, v_us bigint)`,
  'text[]',
  `
declare
  v_now bigint := v_us / 1000;
  v_lanes text[] := belfry.make_room(v_name, v_permits, v_now);
  v_token bigint;
begin
  if v_lanes is null then return null; end if;
  update belfry.names set last_token = greatest(last_token + 1, v_us, v_floor) where name = v_name
    returning last_token into v_token;
  insert into belfry.leases (seq, name, holder, token, acquired_at, expires_at, instance, proof)
    values (coalesce((select seq - 1 from belfry.waiters where name = v_name order by seq limit 1), nextval('belfry.line')),
      v_name, v_holder, v_token, v_now, v_now + v_ttl, v_instance, v_proof);
  return v_lanes;
end`,
)

/**
 * Gives free permits to the locks that wait, oldest first, until the waiter's place would have expired: only asking again
 * proves that it still lives. Places that have expired are gone.
 */
const SERVE_WAITERS = step(
  'serve_waiters(v_name text, v_us bigint, out lanes text[], out wakes integer)',
  'record',
  `
declare
  w belfry.waiters;
  v_granted text[];
begin
  lanes := '{}';
  wakes := 0;
  for w in select * from belfry.waiters where name = v_name order by seq loop
    if w.until > v_us / 1000 then
      exit when belfry.live_holders(v_name, v_us / 1000) >= w.permits;
      v_granted := belfry.grant_lock(v_name, w.holder, least(w.ttl_ms, w.until - v_us / 1000), w.permits, w.instance, w.proof, w.floor, v_us);
      exit when v_granted is null;
      lanes := lanes || v_granted;
      wakes := ${WAKE_LEASES | WAKE_GRANTED};
    end if;
    delete from belfry.waiters where name = v_name and holder = w.holder;
  end loop;
end`,
)

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. One that waits behind an older run which
 * nobody has claimed yet stays where it is: it could not start. Answers how many.
 */
const WAKE_WAITING = step(
  'wake_runs(v_name text, v_now bigint)',
  'integer',
  `
declare
  v_woken integer := 0;
  v_taken integer;
  v_before bigint;
  r belfry.runs;
begin
  loop
    select * into r from belfry.runs where ${waitingForKey('v_name')} order by id limit 1 for update;
    exit when not found;
    if v_taken is null then
      v_taken := belfry.live_holders(v_name, v_now);
      v_before := ${firstDueOfKey('v_name')};
    end if;
    exit when r.id > v_before or v_taken >= r.key_limit;
    perform belfry.make_ready(r);
    v_taken := v_taken + 1;
    v_woken := v_woken + 1;
  end loop;
  return v_woken;
end`,
)

/** Locks come before runs: somebody sits and waits for them. */
const SERVE_NAME = step(
  'serve_name(v_name text, v_us bigint, out lanes text[], out wakes integer)',
  'record',
  `
begin
  select s.lanes, s.wakes into lanes, wakes from belfry.serve_waiters(v_name, v_us) s;
  if belfry.wake_runs(v_name, v_us / 1000) > 0 then wakes := wakes | ${WAKE_RUNS}; end if;
end`,
)

/**
 * When all that is left of a schedule's runs waits for the others, the oldest goes on. Answers whether one did. Where
 * somebody else is at them, `v_busy` says what to do: wait, give up (who has locked such runs may not wait for more), or
 * leave it to others.
 */
const SERVE_LANE = step(
  'serve_lane(v_schedule text, v_now bigint, v_busy text)',
  'boolean',
  `
declare
  r belfry.runs;
begin
  if v_busy = 'wait' then
    -- Two that end the last two runs at once meet here: the second one sees what the first has done.
    select * into r from belfry.runs where ${waitingForLane('v_schedule')} order by id limit 1 for update;
  else
    select * into r from belfry.runs where ${waitingForLane('v_schedule')}
      and id = (select min(id) from belfry.runs where ${waitingForLane('v_schedule')}) for update skip locked;
    if v_busy = 'give up' and not found and exists (select 1 from belfry.runs where ${waitingForLane('v_schedule')}) then
      ${giveUp('somebody else was at the schedule')};
    end if;
  end if;
  if r.id is null then return false; end if;
  -- One by one: all that wait in the line stand between those, and would be gone through.
  if exists (select 1 from unnest(array[0, 1, 3]::smallint[]) w cross join lateral (
    select 1 from belfry.runs where schedule = v_schedule and state < 3 and waits_for = w
      and (engaged or ready_at <= v_now) limit 1) before) then return false; end if;
  perform belfry.make_ready(r);
  return true;
end`,
)

/** Ends every operation: what it freed goes to the oldest that waits for it. The names are locked already. */
const HAND_ON = step(
  `hand_on(v_names text[], v_lanes text[], v_us bigint, v_busy text)`,
  'integer',
  `
declare
  v_wakes integer := 0;
  v_more record;
  v_name text;
begin
  for v_name in select distinct n from unnest(v_names) n where n is not null order by n loop
    select * into v_more from belfry.serve_name(v_name, v_us);
    v_wakes := v_wakes | v_more.wakes;
    v_lanes := v_lanes || v_more.lanes;
  end loop;
  if cardinality(v_lanes) = 0
    or not exists (select 1 from belfry.runs where state = 0 and waits_for = 2) then return v_wakes; end if;
  for v_name in select n.lane from (select distinct n collate "C" as lane from unnest(v_lanes) n where n is not null) n
    cross join lateral (select 1 from belfry.runs where ${waitingForLane('n.lane')} limit 1) waiting order by n.lane
  loop
    if belfry.serve_lane(v_name, v_us / 1000, v_busy) then v_wakes := v_wakes | ${WAKE_RUNS}; end if;
  end loop;
  return v_wakes;
end`,
)

export const NAME_FUNCTIONS = [
  LIVE_HOLDERS,
  MAKE_ROOM,
  GRANT_LOCK,
  SERVE_WAITERS,
  WAKE_WAITING,
  SERVE_NAME,
  SERVE_LANE,
  HAND_ON,
].join('\n')
