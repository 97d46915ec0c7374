/**
 * Making runs. Plain ones are one insert for the whole batch. Those that can be refused are looked at one by one: a
 * dedupe key is reserved by its row, an exclusive key is checked under its name's lock, and a run that waits for others
 * of its schedule holds on to those, so that none of them can end without seeing it.
 */
import { failure } from '../../core/errors.js'
import type { NewRun } from '../../core/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { targetName, targetOptions, toText } from '../../core/stored-text.js'
import { sparseArray, sparseTexts } from './connection/array-text.js'
import type { Database } from './connection/database.js'
import { operation, step } from './connection/sql-function.js'
import { WAKE_ATTEMPTS, WAKE_RUNS, WAKE_SCHEDULES, WAKE_SETTLED } from './connection/wakes.js'
import { giveUp, lockRuns, lockWaitingRuns } from './lock-order.js'
import { keepNumber, keyValues, originNumber } from './run-row.js'
import { firstDueOfKey, waitingForKey, waitingForLane } from './waiting-line.js'

type Value = string | number | boolean | null | undefined

/** The arrays that describe new runs, in order: their types, and what each has of a run. */
const COLUMNS: Readonly<Record<string, readonly [type: string, of: (run: NewRun) => Value]>> = {
  target: ['text', ({ target }) => targetName(target)],
  options: ['text', ({ target }) => targetOptions(target)],
  origin: ['smallint', ({ origin }) => originNumber(origin)],
  schedule: ['text', ({ schedule }) => schedule],
  tick: ['bigint', ({ tick }) => tick],
  backfill: ['text', ({ backfill }) => backfill],
  payload: ['text', ({ payload }) => toText(payload)],
  priority: ['integer', ({ priority }) => priority],
  keep: ['smallint', ({ keep }) => keepNumber(keep)],
  ready_at: ['bigint', ({ readyAt }) => readyAt],
  delay_ms: ['bigint', ({ delayMs = 0 }) => Math.ceil(delayMs)],
  key: ['text', ({ key }) => keyValues(key)[0]],
  key_limit: ['integer', ({ key }) => keyValues(key)[1]],
  key_waits: ['boolean', ({ key }) => keyValues(key)[2]],
  unstamped: ['boolean', ({ key }) => key === 'unstamped'],
  check_key: ['boolean', ({ key, checkKey = false }) => checkKey && key !== 'unstamped'],
  dedupe: ['text', ({ dedupe }) => dedupe],
  dedupe_ms: ['bigint', ({ dedupe, dedupeForMs = 0 }) => (dedupe === undefined ? null : Math.ceil(dedupeForMs))],
  overlap: ['text', ({ overlap = 'allow' }) => (overlap === 'allow' ? null : overlap)],
}
const NAMES = Object.keys(COLUMNS)
const FIELDS = NAMES.join(', ')
/** The types of those arrays, in the same order. */
export const COLUMN_TYPES = Object.values(COLUMNS).map(([type]) => `${type}[]`)
export const CHECK_KEY_COLUMN = NAMES.indexOf('check_key')
export const OVERLAP_COLUMN = NAMES.indexOf('overlap')
const PARAMETERS = COLUMN_TYPES.map((type, at) => `p_${NAMES[at]} ${type}`)
const GIVEN = `unnest(${NAMES.map((field) => `p_${field}`).join(', ')}) with ordinality as g(${FIELDS}, at)`

/** How many runs of a key are due or began and have not ended, as far as the limit. */
const ENGAGED_OF_KEY = step(
  'engaged_of_key(v_key text, v_limit integer, v_now bigint)',
  'integer',
  `
declare
  v_count integer;
begin
  select count(*) into v_count from (select 1 from belfry.runs
    where key = v_key and state < 3 and (attempt > 0 or ready_at <= v_now) limit v_limit) engaged;
  return v_count;
end`,
)

/**
 * The run that has the key, when as many as its limit are due or executing, or one is ready at the same instant. Which one
 * executes its lease says: among the key's runs it would have to be looked for, and there may be many.
 */
const KEY_WINNER = step(
  'key_winner(v_key text, v_limit integer, v_ready_at bigint, v_now bigint)',
  'bigint',
  `
begin
  if v_ready_at > v_now then
    return (select id from belfry.runs where key = v_key and state = 1 and attempt = 0 and ready_at = v_ready_at
      order by id limit 1);
  end if;
  if belfry.engaged_of_key(v_key, v_limit, v_now) < v_limit then return null; end if;
  return coalesce(
    (select run from belfry.leases where name = v_key and run is not null order by run limit 1),
    least(${firstDueOfKey('v_key')},
      (select id from belfry.runs where ${waitingForKey('v_key')} order by id limit 1)),
    (select id from belfry.runs where key = v_key and state < 3 and attempt > 0 order by id limit 1),
    (select id from belfry.runs where key = v_key and state = 0 and ready_at <= v_now order by id limit 1));
end`,
)

/**
 * Holds the schedule's runs that others would wait for, and answers with all that are unfinished, oldest first. Most are
 * locked already.
 */
const HOLD_LANE = step(
  'hold_lane(v_schedule text, v_now bigint)',
  'bigint[]',
  `
declare
  v_held integer;
  v_busy integer;
  v_all bigint[];
begin
  select count(*) into v_held from (select 1 from belfry.runs where schedule = v_schedule and state < 3
    and waits_for in (0, 1, 3) and (engaged or ready_at <= v_now) order by id for no key update skip locked) held;
  select count(*) filter (where waits_for <> 2), coalesce(array_agg(id order by id), '{}') into v_busy, v_all
    from belfry.runs where schedule = v_schedule and state < 3 and (waits_for = 2 or engaged or ready_at <= v_now);
  if v_held < v_busy then ${giveUp('a run came in between')}; end if;
  return v_all;
end`,
)

const PLAIN = `
    return query insert into belfry.runs (id, target, options, origin, schedule, tick, backfill, payload, priority, keep,
      key, key_limit, key_waits, unstamped, state, waits_for, engaged, created_at, ready_at)
    select nextval('belfry.run_ids'), g.target, g.options, g.origin, g.schedule,
      coalesce(g.tick, case when g.origin = 1 then v_now end), g.backfill, g.payload, g.priority, g.keep,
      g.key, g.key_limit, g.key_waits, g.unstamped, case when g.unstamped then 0 else 1 end,
      case when g.unstamped then 1 else 0 end, g.unstamped, v_now, coalesce(g.ready_at, v_now + g.delay_ms)
    from ${GIVEN} order by g.at returning 'enqueued'::text, id;
    return;`

/**
 * What can refuse a run, or is to make way for one: all of it, before anything is decided. Runs with an overlap policy
 * lock their schedule, so that no tick and no other such run is recorded at the same time. A dedupe key that is not
 * taken is made as one whose time is over. Where there are no schedules, that is said: the server takes any index for good
 * enough to find nothing in, and reads all of it.
 */
const LOCK_EARLIER = `
  select coalesce(array_agg(distinct g.schedule) filter (where g.overlap is not null), '{}'),
      coalesce(array_agg(distinct g.schedule) filter (where g.overlap = 'cancel-running'), '{}')
    into v_behind, v_ways from ${GIVEN} where g.schedule is not null;
  if cardinality(v_behind) > 0 then
    perform 1 from belfry.schedules where id = any (v_behind) order by id for update;
  end if;
  perform belfry.make_names(p_key);
  v_held := array(select g.key from ${GIVEN} where g.check_key)
    || array(select key from belfry.runs
      where cardinality(v_behind) > 0 and schedule = any (v_behind) and state < 3 and key is not null);
  perform belfry.lock_names(v_held);
  if cardinality(v_behind) > 0 then
    v_now := belfry.now_us() / 1000;
    ${lockRuns('schedule = any (v_behind) and state < 3 and (engaged or ready_at <= v_now)', 'v_held')}
  end if;
  insert into belfry.dedupes as d (target, dedupe, run, until)
    select target, dedupe, 0, 0 from (
      select g.target, g.dedupe from ${GIVEN} where g.dedupe is not null
      union select r.target, r.dedupe from belfry.runs r
        where cardinality(v_ways) > 0 and r.schedule = any (v_ways) and r.state < 3 and r.dedupe is not null) given
    order by target collate "C", dedupe collate "C"
    on conflict (target, dedupe) do update set run = d.run where false;
  if cardinality(v_ways) > 0 then ${lockWaitingRuns('schedule = any (v_ways) and state < 3')} end if;`

const ENQUEUE_FUNCTION = operation(
  `enqueue(v_plain boolean, ${PARAMETERS.join(', ')})`,
  'table (outcome text, run bigint)',
  `
declare
  v_us bigint;
  v_now bigint;
  v_id bigint;
  v_found bigint;
  v_ready_at bigint;
  v_lane bigint[];
  v_names text[] := '{}';
  v_lanes text[] := '{}';
  v_behind text[];
  v_ways text[];
  v_held text[];
  v_way record;
  g record;
begin
  -- A run that is checked against others must see what was committed while it waited for them.
  perform belfry.durable(true <> all (p_check_key) and cardinality(p_overlap) = 0);
  if v_plain then
    v_now := belfry.now_us() / 1000;
    perform belfry.make_names(p_key);
    ${PLAIN}
  end if;
  ${LOCK_EARLIER}
  v_us := belfry.now_us();
  v_now := v_us / 1000;
  for g in select * from ${GIVEN} order by g.at loop
    v_id := nextval('belfry.run_ids');
    v_ready_at := coalesce(g.ready_at, v_now + g.delay_ms);
    v_found := null;
    if g.dedupe is not null then
      insert into belfry.dedupes as d (target, dedupe, run, until) values (g.target, g.dedupe, v_id, null)
        on conflict (target, dedupe) do update set run = excluded.run, until = null where d.until <= v_now;
      if not found then
        select d.run into v_found from belfry.dedupes d where d.target = g.target and d.dedupe = g.dedupe;
        return query select 'duplicate'::text, v_found;
        continue;
      end if;
    end if;
    if g.origin = 2 then
      select id into v_found from belfry.runs where schedule = g.schedule and tick = g.tick
        and coalesce(backfill, '') = coalesce(g.backfill, '') and origin in (0, 2) and origin = 2;
      if v_found is not null then
        delete from belfry.dedupes d where d.target = g.target and d.dedupe = g.dedupe;
        return query select 'duplicate'::text, v_found;
        continue;
      end if;
    end if;
    if g.check_key and g.key is not null then
      v_found := belfry.key_winner(g.key, g.key_limit, v_ready_at, v_now);
    end if;
    v_lane := '{}';
    if g.overlap <> 'cancel-running' and g.schedule is not null and v_found is null then
      v_lane := belfry.hold_lane(g.schedule, v_now);
      if g.overlap = 'skip' then
        v_found := v_lane[1];
      elsif g.overlap = 'queue-one' then
        select id into v_found from belfry.runs where ${waitingForLane('g.schedule')}
          order by id limit 1;
      end if;
    end if;
    if v_found is not null then
      delete from belfry.dedupes d where d.target = g.target and d.dedupe = g.dedupe and d.run = v_id;
      return query select 'busy'::text, v_found;
      continue;
    end if;
    if g.overlap = 'cancel-running' and g.schedule is not null then
      select * into v_way from belfry.make_way(g.schedule, v_now);
      v_names := v_names || v_way.names;
      v_lanes := v_lanes || g.schedule;
      v_lane := belfry.hold_lane(g.schedule, v_now);
    end if;
    insert into belfry.runs (id, target, options, origin, schedule, tick, backfill, payload, priority, keep,
      key, key_limit, key_waits, unstamped, dedupe, dedupe_ms, state, waits_for, engaged, created_at, ready_at)
    values (v_id, g.target, g.options, g.origin, g.schedule, coalesce(g.tick, case when g.origin = 1 then v_now end),
      g.backfill, g.payload, g.priority, g.keep, g.key, g.key_limit, g.key_waits, g.unstamped, g.dedupe, g.dedupe_ms,
      case when cardinality(v_lane) > 0 or g.unstamped then 0 else 1 end,
      case when cardinality(v_lane) > 0 then 2 when g.unstamped then 1 else 0 end,
      cardinality(v_lane) > 0 or g.unstamped, v_now, v_ready_at);
    return query select 'enqueued'::text, v_id;
  end loop;
  perform belfry.hand_on(v_names, v_lanes, v_us, 'give up');
end`,
)

export const ENQUEUE_FUNCTIONS = [ENGAGED_OF_KEY, KEY_WINNER, HOLD_LANE, ENQUEUE_FUNCTION].join('\n')

const ENQUEUE = `select outcome, run from belfry.enqueue($1, ${NAMES.map((_, at) => `$${at + 2}`).join(', ')})`

/** One transaction makes all of them, and must end long before a call is given up. */
const MOST = 10_000

export function checkCount(runs: readonly NewRun[]): void {
  if (runs.length <= MOST) return
  throw failure(
    'OPTION_INVALID',
    `${runs.length} runs at once are too many for one transaction: enqueue at most ${MOST} in one call`,
  )
}

export async function enqueueRuns(db: Database, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  if (runs.length === 0) return []
  checkCount(runs)
  const values = [runs.every(isPlain), ...columnsOf(runs)]
  const results = await (runs.every(isUnique)
    ? db.write(ENQUEUE, values, { patience: 'patient' })
    : db.writeOnce(ENQUEUE, values))
  db.announce(hintsOf(runs))
  return results.map(([outcome, run]) => ({ outcome: outcome as EnqueueResult['outcome'], run: run ?? '' }))
}

/**
 * Where others made way, attempts are to be cancelled and runs have ended, too. An `advance` passes over a schedule that is
 * locked, so tickers are to look again.
 */
function hintsOf(runs: readonly NewRun[]): number {
  if (runs.every(({ overlap = 'allow' }) => overlap === 'allow')) return WAKE_RUNS
  const hints = WAKE_RUNS | WAKE_SCHEDULES
  return runs.some(({ overlap }) => overlap === 'cancel-running') ? hints | WAKE_ATTEMPTS | WAKE_SETTLED : hints
}

/** Made twice, it is there once. */
function isUnique({ dedupe, backfill }: NewRun): boolean {
  return dedupe !== undefined || backfill !== undefined
}

/** Nothing can refuse it. */
export function isPlain({ dedupe, checkKey, origin, overlap = 'allow' }: NewRun): boolean {
  return dedupe === undefined && !checkKey && origin !== 'backfill' && overlap === 'allow'
}

/** New runs as one array for each of the columns, as text. Those that say nothing are empty. */
export function columnsOf(runs: readonly NewRun[]): string[] {
  return Object.values(COLUMNS).map(([type, of]) => {
    const values = runs.map((run) => textOf(of(run)))
    return type === 'text' ? sparseTexts(values) : sparseArray(values)
  })
}

function textOf(value: Value): string | null {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? null : String(value)
}

const AVAILABLE = 'select belfry.engaged_of_key($1, $2, belfry.now_us() / 1000) < $2'

export async function isAvailable(db: Database, key: string, limit: number): Promise<boolean> {
  const [row] = await db.read(AVAILABLE, [key, limit])
  return row?.[0] === 't'
}
