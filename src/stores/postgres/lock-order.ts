/**
 * The one order in which rows are locked, so that nobody ever waits in a circle. Every operation goes down this list and
 * never back up; within a line it goes in the order that the line names.
 *
 * 1. instances
 * 2. schedules, by id: first those that it makes, then those that are there. Before that, the right to change schedules,
 *    together with others or alone
 * 3. names, by name: first those that it makes, then those that are there. Leases and waiters belong to their name, and
 *    are touched by nobody who does not hold it
 * 4. runs, by id. One that has a key only with its name in hand, so that runs of one key never need an order
 * 5. runs that wait for others of their schedule, by schedule and id
 * 6. dedupe keys, by target and key
 * 7. jobs, then declarations
 *
 * So an operation finds out what it will need, locks it line by line, and only then looks and decides. What came into
 * being in between is locked out of turn: that is rare, and the server tells it as a deadlock, which has changed nothing
 * and is tried again.
 *
 * A claim has to come from the other end, from the run to its key. Therefore it takes its instance before any run, and
 * then waits for no run and no name: what somebody else is at is left for later. Rescue, repair and prune only take what
 * nobody is at, too, wherever they would have to go back up.
 */
import { step } from './sql-function.js'

/** Locks the runs that meet a condition, in order. */
export function lockRuns(condition: string, waitingToo = condition): string {
  return `
  perform 1 from belfry.runs where ${condition} and waits_for <> 2 order by id for update;
  perform 1 from belfry.runs where ${waitingToo} and waits_for = 2 order by schedule, id for update;`
}

/** The dedupe keys of runs that may end. The runs are locked already. */
const LOCK_DEDUPES = step(
  'lock_dedupes(v_runs bigint[])',
  'void',
  `
begin
  perform 1 from belfry.dedupes d where (d.target, d.dedupe) in (
    select r.target, r.dedupe from belfry.runs r where r.id = any (v_runs) and r.dedupe is not null)
    order by d.target, d.dedupe for update;
end`,
)

/** Makes the rows of names that have none, in order. Whoever makes a run with a key does this first. */
const MAKE_NAMES = step(
  'make_names(v_names text[])',
  'void',
  `
begin
  insert into belfry.names (name) select n from (select distinct n from unnest(v_names) n) given
    where n is not null and not exists (select 1 from belfry.names where name = n) order by n on conflict do nothing;
end`,
)

/** Takes the rows of names, in order, and makes those that are missing. */
const LOCK_NAMES = step(
  'lock_names(v_names text[])',
  'void',
  `
declare
  v_wanted text[] := array(select distinct n from unnest(v_names) n where n is not null order by n);
  v_locked integer;
begin
  if cardinality(v_wanted) = 0 then return; end if;
  if cardinality(v_wanted) = 1 then
    perform 1 from belfry.names where name = v_wanted[1] for update;
    if found then return; end if;
  end if;
  loop
    perform belfry.make_names(v_wanted);
    select count(*) into v_locked from (
      select 1 from belfry.names where name = any (v_wanted) order by name for update) locked;
    -- One that was pruned in between is made again.
    exit when v_locked = cardinality(v_wanted);
  end loop;
end`,
)

/** Takes a name's row if nobody else is at it. */
const TRY_NAME = step(
  'try_name(v_name text)',
  'boolean',
  `
begin
  perform 1 from belfry.names where name = v_name for update skip locked;
  if found then return true; end if;
  if exists (select 1 from belfry.names where name = v_name) then return false; end if;
  -- It was pruned between the making of a run and its start.
  insert into belfry.names (name) values (v_name) on conflict do nothing;
  return found;
end`,
)

export const LOCK_FUNCTIONS = [LOCK_DEDUPES, MAKE_NAMES, LOCK_NAMES, TRY_NAME].join('\n')
