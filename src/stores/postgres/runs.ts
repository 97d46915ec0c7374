import { checkPageLimit } from '../../core/page-limit.js'
import type { Run } from '../../core/run.js'
import type { CancelResult, Page, RetryResult, RunQuery, Stamp } from '../../core/store.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'
import { WAKE_RUNS } from './connection/wakes.js'
import { giveUp } from './lock-order.js'
import { inStates, keyValues, runColumns, runNumber, toRun, waitNumber } from './run-row.js'

const GET = `select ${runColumns('r')} from belfry.runs r where r.id = $1`

export async function getRun(db: Database, id: string): Promise<Run | undefined> {
  const number = runNumber(id)
  const [row] = number === undefined ? [] : await db.read(GET, [number])
  return row === undefined ? undefined : toRun(row)
}

const CANCEL_FUNCTION = operation(
  'cancel(v_run bigint, out outcome text, out wakes integer)',
  'record',
  `
declare
  v_us bigint;
  v_names text[];
  v_waits boolean;
  r belfry.runs;
begin
  perform belfry.durable();
  wakes := 0;
  select array_remove(array[key], null), waits_for = 2 into v_names, v_waits from belfry.runs where id = v_run and state < 3;
  perform belfry.lock_names(v_names);
  if v_waits then
    -- One that waits for others of its schedule comes after its dedupe key, unless its turn has come meanwhile.
    perform belfry.lock_dedupes(array[v_run]);
    select * into r from belfry.runs where id = v_run and waits_for = 2 for update;
    if not found then ${giveUp('the run became ready meanwhile')}; end if;
  else
    select * into r from belfry.runs where id = v_run for update;
  end if;
  if r.state < 3 and r.key is not null and r.key is distinct from v_names[1] then
    ${giveUp('the run was given its key meanwhile')};
  end if;
  if r.id is null then
    outcome := 'missing';
  elsif r.state >= 3 then
    outcome := 'finished';
  elsif r.running then
    update belfry.runs set cancel = true where id = v_run;
    outcome := 'requested';
    wakes := 8;
  else
    v_us := belfry.now_us();
    perform belfry.end_run(r, 5, v_us / 1000, null, null, null);
    -- One that waits for others of its schedule holds up nobody.
    wakes := 16 | belfry.hand_on(v_names, case when r.waits_for = 2 then '{}' else array[r.schedule] end, v_us,
      case when r.waits_for = 2 then 'give up' else 'wait' end);
    outcome := 'cancelled';
  end if;
end`,
)

const CANCEL = 'select outcome, wakes from belfry.cancel($1)'

export async function cancelRun(db: Database, id: string): Promise<CancelResult> {
  const number = runNumber(id)
  if (number === undefined) return 'missing'
  const [row] = await db.write(CANCEL, [number])
  db.announce(Number(row?.[1]))
  return (row?.[0] ?? 'missing') as CancelResult
}

const RETRY_FUNCTION = operation(
  'retry(v_run bigint)',
  'text',
  `
declare
  v_now bigint;
  r belfry.runs;
begin
  perform belfry.durable();
  perform belfry.make_names(array(select key from belfry.runs where id = v_run));
  select * into r from belfry.runs where id = v_run for update;
  if not found then return 'missing'; end if;
  if r.state <= 3 then return 'refused'; end if;
  v_now := belfry.now_us() / 1000;
  if r.dedupe is not null then
    insert into belfry.dedupes as d (target, dedupe, run, until) values (r.target, r.dedupe, r.id, null)
      on conflict (target, dedupe) do update set run = excluded.run, until = null
      where d.until <= v_now or d.run = excluded.run;
    if not found then return 'refused'; end if;
  end if;
  update belfry.runs set state = case when unstamped then 0 else 1 end, waits_for = case when unstamped then 1 else 0 end,
    engaged = true, ended = null, finished_at = null, reason = null, error = null, result = null, start_by = null,
    cancel = false, rescued = false, failures = 0, takeovers = 0, ready_at = v_now where id = v_run;
  return 'ready';
end`,
)

const RETRY = 'select belfry.retry($1)'

export async function retryRun(db: Database, id: string): Promise<RetryResult> {
  const number = runNumber(id)
  if (number === undefined) return 'missing'
  const [row] = await db.writeOnce(RETRY, [number])
  db.announce(WAKE_RUNS)
  return (row?.[0] ?? 'missing') as RetryResult
}

const STAMP_FUNCTION = operation(
  'stamp(v_runs bigint[], v_keys text[], v_limits integer[], v_waits boolean[])',
  'void',
  `
declare
  g record;
  r belfry.runs;
begin
  perform belfry.durable();
  perform belfry.make_names(v_keys);
  for g in select g.*, r.waits from unnest(v_runs, v_keys, v_limits, v_waits) as g(id, key, key_limit, key_waits)
    cross join lateral (select waits_for = 2 as waits, schedule from belfry.runs where id = g.id limit 1) r
    order by r.waits, case when r.waits then r.schedule end, g.id
  loop
    select * into r from belfry.runs where id = g.id and unstamped and state < 3 and (waits_for = 2) = g.waits for update;
    if not found then
      if exists (select 1 from belfry.runs where id = g.id and unstamped and state < 3) then
        ${giveUp('a run became ready meanwhile')};
      end if;
      continue;
    end if;
    update belfry.runs set unstamped = false, key = g.key, key_limit = g.key_limit, key_waits = g.key_waits,
      state = case when waits_for = 1 then 1 else state end, waits_for = case when waits_for = 1 then 0 else waits_for end
      where id = g.id;
  end loop;
end`,
)

const STAMP = 'select belfry.stamp($1, $2, $3, $4)'

export async function stampRuns(db: Database, stamps: readonly Stamp[]): Promise<void> {
  const known = stamps.flatMap(({ run, key }) => {
    const number = runNumber(run)
    return number === undefined ? [] : [[number, ...keyValues(key)] as const]
  })
  if (known.length === 0) return
  await db.write(
    STAMP,
    [0, 1, 2, 3].map((at) => known.map((row) => row[at])),
    { patience: 'patient' },
  )
  db.announce(WAKE_RUNS)
}

/** Newest first. */
export async function listRuns(db: Database, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const { schedule, tick, job, sink, key, states, waitsFor, after, limit } = query
  const before = after === undefined ? [] : [`r.id < ${bind(runNumber(after) ?? '0')}`]
  const conditions = [
    ...(schedule === undefined ? [] : [`r.schedule = ${bind(schedule)}`]),
    ...(tick === undefined ? [] : [`r.tick = ${bind(tick)}`]),
    ...(job === undefined ? [] : [`r.target = ${bind(`job:${job}`)}`]),
    ...(sink === undefined ? [] : [`r.target = ${bind(`sink:${sink}`)}`]),
    ...(key === undefined ? [] : [`r.key = ${bind(key)}`]),
    ...(states === undefined ? [] : [inStates('r', states)]),
    ...(waitsFor === undefined ? [] : [`r.state = 0 and r.waits_for = ${waitNumber(waitsFor)}`]),
  ]
  // Most of what can be asked for stands in no order of its own. A schedule's runs do, and are few.
  const look = conditions.length === 0 || schedule !== undefined ? undefined : query.look
  const all = states?.length === 1 && states[0] === 'running' ? RUNNING : RUNS
  const table =
    look === undefined ? all : `(select r.* from ${RUNS} r ${where(before)} order by r.id desc limit ${bind(look)})`
  const wanted = where(look === undefined ? [...conditions, ...before] : conditions)
  const most = bind(limit + 1)
  const rows = await db.search(schedule === undefined ? select(table, wanted, most) : bothHalves(wanted, most), values)
  const items = rows.slice(0, limit).map((row) => toRun(row))
  const last = items.at(-1)
  if (rows.length > limit && last !== undefined) return { items, next: last.id }
  const end = look === undefined ? undefined : await endOfLook(db, after, look)
  return end === undefined ? { items } : { items, next: end }
}

const RUNS = 'belfry.runs'
/** What runs now, as claims gave it: among all that is ready, or will be some day, it would have to be looked for. */
const RUNNING = `(select r.* from (select distinct unnest(runs) as id from belfry.claims) g
  cross join lateral (select * from belfry.runs where id = g.id and running limit 1) r)`
const END = 'select id from belfry.runs where id < $1 order by id desc offset $2 limit 1'
const NEWEST = '9223372036854775807'

/** The last run that was looked at. Undefined when there were fewer than so many. */
async function endOfLook(db: Database, after: string | undefined, look: number): Promise<string | undefined> {
  const [row] = await db.read(END, [after === undefined ? NEWEST : (runNumber(after) ?? '0'), look - 1], {
    patience: 'patient',
  })
  return row?.[0] ?? undefined
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}

function select(table: string, wanted: string, most: string): string {
  return `select ${runColumns('r')} from ${table} r ${wanted} order by r.id desc limit ${most}`
}

/** A schedule's unfinished runs and its history stand in an index each. */
function bothHalves(wanted: string, most: string): string {
  const half = (condition: string) => `(${select(RUNS, `${wanted} and ${condition}`, most)})`
  return `${half('r.state < 3')} union all ${half('r.state >= 3')} order by id desc limit ${most}`
}

export const RUN_FUNCTIONS = [CANCEL_FUNCTION, RETRY_FUNCTION, STAMP_FUNCTION].join('\n')
