/**
 * Ending attempts. What most of them come to (they succeed, without key or dedupe) is done for the whole batch in one
 * statement; the others one by one. They come in the order of their runs, which is the order in which those are locked;
 * where one statement cannot keep to it, all are locked before. Keys come before the runs that hold them.
 */
import type { Outcome } from '../../core/run.js'
import type { Settlement, SettleResult } from '../../core/store.js'
import { toText } from '../../core/stored-text.js'
import { numberArray, textArray } from './connection/array-text.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'
import { giveUp } from './lock-order.js'
import { runNumber } from './run-row.js'

const KINDS: readonly Outcome['kind'][] = ['succeeded', 'failed', 'retry', 'released', 'cancelled']

/**
 * Where it was found; if it has moved since, it is looked at by itself. The number is compared because its place may be
 * another's by then, in a way that cannot be looked up: the place is enough.
 */
const FOUND = 'r.ctid = g.row and r.id + 0 = g.id'
const PLAIN = `${FOUND} and r.running and r.token = g.token and r.key is null and r.dedupe is null`

export const SETTLE_FUNCTIONS = operation(
  `settle(v_runs bigint[], v_tokens bigint[], v_kinds smallint[], v_results text[], v_errors text[], v_delays bigint[],
    out settled integer[], out wakes integer)`,
  'record',
  `
declare
  v_us bigint := belfry.now_us();
  v_now bigint := v_us / 1000;
  v_names text[];
  -- Those that something was done about: a stale attempt hands nothing on.
  v_freed text[] := '{}';
  v_lanes text[];
  v_keeps boolean;
  v_drops boolean;
  v_special boolean;
  v_rows tid[];
  g record;
  r belfry.runs;
begin
  perform belfry.durable();
  select coalesce(array_agg(r.key) filter (where r.key is not null), '{}'), bool_or(r.keep = 0), bool_or(r.keep > 0),
      bool_or(g.kind > 0 or r.key is not null or r.dedupe is not null), array_agg(r.row order by g.at)
    into v_names, v_keeps, v_drops, v_special, v_rows
    from unnest(v_runs, v_kinds) with ordinality as g(id, kind, at)
    left join lateral (select ctid as row, key, keep, dedupe from belfry.runs where id = g.id limit 1) r on true;
  if v_special or v_keeps and v_drops then
    perform belfry.lock_names(v_names);
    perform 1 from belfry.runs where id = any (v_runs) order by id for update;
    perform belfry.lock_dedupes(v_runs);
    -- The locks may have been waited for. A run must not look as if it had ended while it still held its key.
    v_us := belfry.now_us();
    v_now := v_us / 1000;
  end if;
  with given as (
    select * from unnest(v_runs, v_tokens, v_kinds, v_results, v_rows) with ordinality
      as g(id, token, kind, result, row, at) where kind = 0
  ), kept as (
    update belfry.runs r set state = 3, running = false, finished_at = v_now, ended = nextval('belfry.endings'), reason = null,
      error = null, result = case when r.settled_token = r.token then r.result else g.result end,
      settled_token = r.token
    from given g where v_keeps and ${PLAIN} and r.keep = 0 returning g.at, r.schedule
  ), gone as (
    delete from belfry.runs r using given g where v_drops and ${PLAIN} and r.keep > 0
      returning g.at, r.schedule
  )
  select coalesce(array_agg(at::integer), '{}'), coalesce(array_agg(schedule) filter (where schedule is not null), '{}')
    into settled, v_lanes from (select * from kept union all select * from gone) done;
  wakes := case when cardinality(settled) > 0 then 16 else 0 end;

  if cardinality(settled) < cardinality(v_runs) then
    for g in select * from unnest(v_runs, v_tokens, v_kinds, v_results, v_errors, v_delays) with ordinality
      as g(id, token, kind, result, error, delay, at) where at not in (select unnest(settled)) order by at
    loop
      select * into r from belfry.runs where id = g.id for update skip locked;
      if not found then
        -- Out of turn. One that is no longer this attempt's is so for ever, and needs no lock.
        select * into r from belfry.runs where id = g.id;
        continue when not found;
        if r.running and r.token = g.token then ${giveUp('somebody else was at the run')}; end if;
      end if;
      if r.settled_token = g.token and not r.running then
        settled := settled || g.at::integer;
        continue;
      end if;
      -- A lease that ran out counts as held until somebody took it.
      continue when not r.running or r.token <> g.token
        or (r.key is not null and not exists (select 1 from belfry.leases where run = r.id));
      settled := settled || g.at::integer;
      if belfry.has_committed(r) then
        g.kind := 0;
        g.result := r.result;
        g.error := null;
      end if;
      r.settled_token := g.token;
      if g.kind in (1, 2) and not (g.kind = 2 and r.cancel) then r.failures := r.failures + 1; end if;
      if g.kind in (2, 3) and not r.cancel then
        if g.kind = 2 then r.error := g.error; end if;
        perform belfry.give_back(r, v_now + coalesce(g.delay, 0));
        wakes := wakes | 2;
      else
        perform belfry.end_run(r, case g.kind when 0 then 3 when 1 then 4 else 5 end, v_now, null, g.error, g.result);
        v_lanes := v_lanes || r.schedule;
        wakes := wakes | 16;
      end if;
      if r.key is not null then
        v_freed := v_freed || r.key;
        wakes := wakes | 4;
      end if;
    end loop;
  end if;
  wakes := wakes | belfry.hand_on(v_freed, v_lanes, v_us, 'wait');
end`,
)

const SETTLE = `select array_to_json(settled), wakes
  from belfry.settle($1, $2, $3, $4, $5, $6)`

export async function settleRuns(db: Database, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  if (settlements.length === 0) return []
  const given = inOrder(settlements)
  const outcomes = given.map(({ outcome }) => outcome)
  const [row] = await db.write(
    SETTLE,
    [
      numberArray(given.map(({ number }) => number)),
      numberArray(given.map(({ token }) => token)),
      numberArray(outcomes.map(({ kind }) => KINDS.indexOf(kind))),
      textArray(outcomes.map(resultOf)),
      textArray(outcomes.map(errorOf)),
      numberArray(outcomes.map((outcome) => (outcome.kind === 'retry' ? Math.ceil(outcome.delayMs) : 0))),
    ],
    { patience: 'prompt' },
  )
  db.announce(Number(row?.[1]))
  const results = settlements.map((): SettleResult => 'stale')
  for (const place of JSON.parse(row?.[0] ?? '[]') as number[]) results[given[place - 1]?.at ?? -1] = 'settled'
  return results
}

/** In the order in which runs are locked; those of one run stay in their own. */
function inOrder(settlements: readonly Settlement[]) {
  return settlements
    .map(({ run, token, outcome }, at) => ({ number: Number(runNumber(run) ?? 0), token, outcome, at }))
    .sort((one, other) => one.number - other.number)
}

function resultOf(outcome: Outcome): string | null {
  return outcome.kind === 'succeeded' && outcome.result !== undefined ? toText(outcome.result) : null
}

function errorOf(outcome: Outcome): string | null {
  return 'error' in outcome && outcome.error !== undefined ? JSON.stringify(outcome.error) : null
}
