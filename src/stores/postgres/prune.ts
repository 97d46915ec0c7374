/**
 * Forgetting, in bounded steps and from the old end of an index: cost is by what is forgotten, not by what is kept. What
 * somebody is at is left for the next time.
 */
import type { PruneRequest } from '../../core/store.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'

/** One kind of thing to forget, as far as the limit goes. */
function forget(statement: string): string {
  return `
  if v_left > 0 then
    ${statement.trim()};
    get diagnostics v_count = row_count;
    v_left := greatest(v_left - v_count, 0);
  end if;`
}

/** The oldest first: what is not old enough ends the search. */
const RUNS = forget(`
    delete from belfry.runs where id in (
      select id from belfry.runs where id in (
        select id from (select id, ended, finished_at from belfry.runs where ended is not null order by ended limit v_left) o
        where ended <= v_through or finished_at <= v_now - v_max_age)
      and ended is not null for update skip locked)`)

const SKIPS = forget(`
    delete from belfry.skips where seq in (
      select seq from (select seq, recorded_at from belfry.skips order by seq limit v_left for update skip locked) o
      where recorded_at <= v_now - v_max_age)`)

/** A finished schedule goes with its history, once nothing of it is unfinished. */
const SCHEDULES = forget(`
    with gone as (
      delete from belfry.schedules where id in (
        select id from belfry.schedules s where finished_at <= v_now - v_max_age and removable and not exists (
          select 1 from belfry.runs where schedule = s.id and state < 3 and (engaged or ready_at <= v_now))
        order by finished_at limit v_left for update skip locked)
      returning definition
    )
    delete from belfry.definitions where id in (select definition from gone)`)

const LOCKS = forget(`
    delete from belfry.leases where run is null and expires_at <= v_now - v_lease_age and name = any (v_names)`)

const NAMES = forget(`
    delete from belfry.names where name in (
      select name from belfry.names n where name = any (v_names) and last_token <= (v_now - v_lease_age) * 1000
        and not exists (select 1 from belfry.leases where name = n.name)
        and not exists (select 1 from belfry.waiters where name = n.name)
        and not exists (select 1 from belfry.runs where key = n.name and state < 3)
      for update skip locked)`)

const DEDUPES = forget(`
    delete from belfry.dedupes where (target, dedupe) in (
      select target, dedupe from belfry.dedupes where until <= v_now order by until limit v_left for update skip locked)`)

const RECORDS = forget(`
    delete from belfry.records where (kind, id) in (
      select kind, id from belfry.records where expires_at <= v_now order by expires_at limit v_left
      for update skip locked)`)

export const PRUNE_FUNCTIONS = operation(
  'prune(v_max_age bigint, v_max_runs bigint, v_lease_age bigint, v_limit integer)',
  'integer',
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_left bigint := v_limit;
  v_names text[];
  v_from text collate "C";
  v_count bigint;
  v_newest bigint;
  v_through bigint;
begin
  -- Endings are numbered: most of the time a look at both ends of the index says that there are few.
  select ended into v_newest from belfry.runs where ended is not null order by ended desc limit 1;
  select ended into v_through from belfry.runs where ended is not null order by ended limit 1;
  if v_newest - v_through >= v_max_runs then
    select ended into v_through from belfry.runs where ended is not null order by ended desc offset v_max_runs limit 1;
  else
    v_through := null;
  end if;
  v_names := array(select name from belfry.names where name in (select name from belfry.leases
    where run is null and expires_at <= v_now - v_lease_age order by expires_at limit v_left) for update skip locked);
  if cardinality(v_names) > 0 then
    -- A lock whose holder went away without a word.
    ${LOCKS}
    perform belfry.hand_on(v_names, '{}', v_us, 'wait');
  end if;
  ${RUNS}
  ${SKIPS}
  ${SCHEDULES}
  -- An index by age would have to be written with every grant. Instead each prune walks on from where the last one was.
  v_from := coalesce((select value from belfry.settings where name = 'pruned_names'), '');
  v_names := array(select name from belfry.names where name > v_from order by name limit v_left);
  if v_left > 0 and (v_from <> '' or cardinality(v_names) = v_left) then
    insert into belfry.settings values ('pruned_names', case when cardinality(v_names) = v_left then v_names[v_left] else '' end)
      on conflict (name) do update set value = excluded.value;
  end if;
  ${NAMES}
  ${DEDUPES}
  ${RECORDS}
  return v_limit - v_left;
end`,
)

const PRUNE = 'select belfry.prune($1, $2, $3, $4)'

export async function pruneHistory(db: Database, request: PruneRequest): Promise<number> {
  const { maxAgeMs, maxRuns, leaseAgeMs, limit } = request
  const [row] = await db.write(PRUNE, [Math.ceil(maxAgeMs), maxRuns, Math.ceil(leaseAgeMs), limit], {
    patience: 'patient',
  })
  return Number(row?.[0])
}
