/**
 * The one order in which rows are locked, so that nobody ever waits in a circle. Every operation goes down this list and
 * never back up; within a line it goes in the order that the line names.
 *
 * 1. instances. The rows of their claims belong to them: a claim makes its own, and whoever holds the instance changes them
 * 2. schedules, by id: first those that it makes, then those that are there. Before that, the right to change schedules,
 *    together with others or alone
 * 3. names, by name: first those that it makes, then those that are there. Leases and waiters belong to their name, and
 *    are touched by nobody who does not hold it
 * 4. runs, by id. One that has a key only with its name in hand, so that runs of one key never need an order
 * 5. dedupe keys, by target and key
 * 6. runs that wait for others of their schedule, by schedule and id: every operation ends with handing on to those
 * 7. jobs, then declarations
 *
 * So an operation finds out what it will need, locks it line by line, and only then looks and decides. What came into
 * being in between would be locked out of turn. For that nobody waits: it is taken if nobody is at it, and else all is
 * given up and tried again, as after a serialization failure.
 *
 * A claim has to come from the other end, from the run to its key. Therefore it takes its instance before any run, and
 * then waits for no run, no name and no dedupe key: what somebody else is at is left for later. Making room for another
 * holder, rescue, repair and prune only take what nobody is at, too, wherever they would have to go back up.
 *
 * Names are ordered byte by byte, whatever the database's collation is.
 *
 * One thing cannot be kept in order: a transaction of the caller's own, which locks rows of the caller's, and with
 * `enqueue(…, { tx })` ours, in whatever order the caller likes. If that ends in a deadlock, the server tells one of
 * both; an operation of ours tries again.
 */
import { step } from './connection/sql-function.js'

/** Locks the runs that meet a condition and wait for no others. Those with a key only if its name is among `names`. */
export function lockRuns(condition: string, names: string): string {
  return `perform 1 from belfry.runs where ${condition} and waits_for <> 2 and (key is null or key = any (${names}))
    order by id for update;`
}

/** Locks the runs that meet a condition and wait for others of their schedule. Whoever does this waits for no more. */
export function lockWaitingRuns(condition: string): string {
  return `perform 1 from belfry.runs where ${condition} and waits_for = 2 order by schedule, id for update;`
}

/** Ends an operation that met something out of turn. It has changed nothing, and is tried again. */
export function giveUp(why: string): string {
  return `raise exception 'belfry: ${why}' using errcode = '40001'`
}

/** Locks the runs that meet a condition without waiting, and puts their ids into a variable. Most are locked already. */
export function takeRuns(into: string, condition: string): string {
  return `
  ${into} := array(select id from belfry.runs where ${condition} order by id for update skip locked);
  if cardinality(${into}) < (select count(*) from belfry.runs where ${condition}) then
    ${giveUp('a run came in between')};
  end if;`
}

/**
 * The row of a run's dedupe key. Its index goes by the database's collation and a run's target by its bytes: compared as
 * they are, no index is of use, and every key that there is would be looked at.
 */
export function dedupeOf(run: string): string {
  return `target = ${run}.target collate "default" and dedupe = ${run}.dedupe collate "default"`
}

/** The dedupe keys of runs that may end. The runs are locked already. */
const LOCK_DEDUPES = step(
  'lock_dedupes(v_runs bigint[])',
  'void',
  `
declare
  r record;
begin
  for r in select distinct target, dedupe collate "C" as dedupe from belfry.runs
    where id = any (v_runs) and dedupe is not null order by target, dedupe
  loop
    perform 1 from belfry.dedupes where ${dedupeOf('r')} for update;
  end loop;
end`,
)

/** The same out of turn. */
const TAKE_DEDUPES = step(
  'take_dedupes(v_runs bigint[])',
  'void',
  `
declare
  r belfry.runs;
begin
  for r in select * from belfry.runs where id = any (v_runs) and dedupe is not null loop
    if not belfry.try_dedupe(r) then ${giveUp('a dedupe key came in between')}; end if;
  end loop;
end`,
)

/** Takes a run's dedupe key if it has one and nobody else is at it. */
const TRY_DEDUPE = step(
  'try_dedupe(r belfry.runs)',
  'boolean',
  `
begin
  if r.dedupe is null then return true; end if;
  perform 1 from belfry.dedupes where ${dedupeOf('r')} for update skip locked;
  return found or not exists (select 1 from belfry.dedupes where ${dedupeOf('r')});
end`,
)

/** Makes the rows of names that have none, in order. Whoever makes a run with a key does this first. */
const MAKE_NAMES = step(
  'make_names(v_names text[])',
  'void',
  `
begin
  insert into belfry.names (name) select n from (select distinct n collate "C" as n from unnest(v_names) n) given
    where n is not null and not exists (select 1 from belfry.names where name = n) order by n on conflict do nothing;
end`,
)

/** Takes the rows of names, in order, and makes those that are missing. */
const LOCK_NAMES = step(
  'lock_names(v_names text[])',
  'void',
  `
declare
  v_wanted text[] := array(select distinct n from unnest(v_names) n where n is not null);
  v_locked integer;
begin
  if cardinality(v_wanted) = 0 then return; end if;
  if cardinality(v_wanted) = 1 then
    perform 1 from belfry.names where name = v_wanted[1] for update;
    if found then return; end if;
  end if;
  perform belfry.make_names(v_wanted);
  select count(*) into v_locked from (
    select 1 from belfry.names where name = any (v_wanted) order by name for update) locked;
  if v_locked < cardinality(v_wanted) then ${giveUp('a name was pruned meanwhile')}; end if;
end`,
)

/** The same out of turn. */
const TAKE_NAMES = step(
  'take_names(v_names text[])',
  'void',
  `
declare
  v_wanted text[] := array(select distinct n from unnest(v_names) n where n is not null);
  v_locked integer;
begin
  if cardinality(v_wanted) = 0 then return; end if;
  select count(*) into v_locked from (
    select 1 from belfry.names where name = any (v_wanted) for update skip locked) locked;
  if v_locked < cardinality(v_wanted) then ${giveUp('a key came in between')}; end if;
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

export const LOCK_FUNCTIONS = [
  LOCK_DEDUPES,
  TAKE_DEDUPES,
  TRY_DEDUPE,
  MAKE_NAMES,
  LOCK_NAMES,
  TAKE_NAMES,
  TRY_NAME,
].join('\n')
