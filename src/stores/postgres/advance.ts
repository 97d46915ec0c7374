/**
 * Recording ticks: one short transaction a batch. It takes due schedules that nobody else is at, plans them here with the
 * database's now, and writes everything in one statement.
 *
 * - Two that advance at once: each skips the rows that the other holds.
 * - Crash or stop in between: the transaction is rolled back, by the server's own timeout if need be, and the schedules
 *   are as due as before.
 * - Crash after the commit, or a lost reply: cursors have moved, and a tick is unique by (schedule, instant) anyway.
 * - A run that a tick has to wait for ends meanwhile: those runs are held while the waiting one is written, so that
 *   either their ending sees it, or it sees their ending and goes on at once.
 */
import { applyPlan } from '../../core/declare.js'
import type { Plan, PlannedTick, Unfinished } from '../../core/plan.js'
import { plannable, type Schedule, type ScheduleDefinition } from '../../core/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import { numberArray, textArray } from './array-text.js'
import type { Database, Row, Transaction } from './connection.js'
import { lockRuns } from './lock-order.js'
import { definitionOf, PROGRESS_COLUMNS, withProgress } from './schedule-row.js'
import { operation } from './sql-function.js'

const UNFINISHED = `(select json_agg(json_build_array(r.state, r.attempt > 0, case when r.origin = 0 then r.tick end)
    order by r.id) from belfry.runs r where r.schedule = s.id and r.state < 3
    and (r.waits_for = 2 or r.engaged or r.ready_at <= s.now_ms))`

/** Numbers only: the statement travels in one message with the `begin`, which can have no parameters. */
function takeDue(limit: number, lookaheadMs: number): string {
  return `select belfry.durable(); set local enable_seqscan = off; set local jit = off;
  select s.now_ms, case when s.minds_overlap then ${UNFINISHED} end, ${PROGRESS_COLUMNS} from (
    select *, (select belfry.now_us() / 1000) as now_ms from belfry.schedules
    where due_at <= (select belfry.now_us() / 1000 + ${Math.ceil(lookaheadMs)})
    order by due_at, place limit ${Math.ceil(limit)} for update skip locked) s order by s.due_at, s.place`
}

/** What was recorded before and is to make room, or is to be waited for: all of it, before anything is decided. */
const LOCK_EARLIER = `
    perform belfry.lock_names(array(select key from belfry.runs
      where schedule = any (v_retract || v_way || v_behind) and state < 3 and key is not null));
    ${lockRuns(
      'schedule = any (v_retract || v_way || v_behind) and state < 3 and (engaged or ready_at <= v_now)',
      'schedule = any (v_retract || v_way) and state < 3',
    )}
    perform belfry.lock_dedupes(array(select id from belfry.runs
      where schedule = any (v_way) and state < 3 and dedupe is not null));`

const RECORD_FUNCTION = operation(
  `record_ticks(v_now bigint,
    s_ids text[], s_cursors bigint[], s_remaining bigint[], s_next bigint[], s_due bigint[], s_finished bigint[],
    t_schedules text[], t_definitions bigint[], t_at bigint[], t_ready bigint[], t_start_by bigint[], t_waits boolean[],
    t_keys text[], k_schedules text[], k_from bigint[], k_to bigint[], k_count bigint[], k_reasons text[],
    v_retract text[], v_through bigint[], v_way text[],
    out recorded integer, out next_due_at bigint, out wakes integer)`,
  'record',
  `
declare
  v_names text[] := '{}';
  v_lanes text[] := '{}';
  v_behind text[] := '{}';
  v_step record;
  g record;
  r belfry.runs;
begin
  wakes := 0;
  perform belfry.make_names(t_keys);
  if true = any (t_waits) then
    v_behind := array(select distinct schedule from unnest(t_schedules, t_waits) as g(schedule, waits) where waits);
  end if;
  if cardinality(v_retract || v_way || v_behind) > 0 then
    ${LOCK_EARLIER}
  end if;
  for g in select * from unnest(v_retract, v_through) as g(schedule, through) order by schedule loop
    v_names := v_names || array(select key from belfry.runs where schedule = g.schedule and state < 2 and origin = 0
      and attempt = 0 and tick <= g.through and key is not null);
    perform belfry.lock_names(v_names);
    for r in select * from belfry.runs where schedule = g.schedule and state < 2 and origin = 0 and attempt = 0
      and tick <= g.through order by id for update
    loop
      perform belfry.end_run(r, 6, v_now, 'missed', null, null);
      wakes := wakes | 16;
    end loop;
    v_lanes := v_lanes || g.schedule;
  end loop;
  for g in select * from unnest(v_way) as g(schedule) order by schedule loop
    select * into v_step from belfry.make_way(g.schedule, v_now);
    v_names := v_names || v_step.names;
    v_lanes := v_lanes || g.schedule;
    wakes := wakes | v_step.wakes;
  end loop;

  v_lanes := v_lanes || v_behind;
  with made as (
    insert into belfry.runs (id, target, options, origin, schedule, tick, payload, priority, keep, key, key_limit,
      key_waits, unstamped, state, waits_for, engaged, created_at, ready_at, start_by)
    select nextval('belfry.run_ids'), d.target, d.options, 0, t.schedule, t.at, d.payload, d.priority, d.keep, d.key,
      d.key_limit, d.key_waits, d.unstamped, case when t.waits or d.unstamped then 0 else 1 end,
      case when t.waits then 2 when d.unstamped then 1 else 0 end, true, v_now, t.ready_at, t.start_by
    from unnest(t_schedules, t_definitions, t_at, t_ready, t_start_by, t_waits) with ordinality
      as t(schedule, definition, at, ready_at, start_by, waits, place)
    join belfry.definitions d on d.id = t.definition
    -- An instant may have been recorded under an earlier schedule of the same name. Others cannot come in between: the
    -- schedule's row is ours, and the index would tell.
    where (select r.id from belfry.runs r where r.schedule = t.schedule and r.tick = t.at
      and coalesce(r.backfill, '') = '' and r.origin in (0, 2) limit 1) is null
    order by t.place returning 1
  )
  select count(*) into recorded from made;
  insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
    select k.*, v_now from unnest(k_schedules, k_from, k_to, k_count, k_reasons) as k;
  update belfry.schedules s set cursor = g.cursor, remaining = g.remaining, next_at = g.next_at, due_at = g.due_at,
    finished_at = g.finished_at, place = nextval('belfry.places')
    from (select * from unnest(s_ids, s_cursors, s_remaining, s_next, s_due, s_finished) with ordinality
      as g(id, cursor, remaining, next_at, due_at, finished_at, at) order by at) g
    where s.id = g.id;
  if recorded > 0 then wakes := wakes | 2; end if;
  wakes := wakes | belfry.hand_on(v_names, v_lanes, v_now * 1000);
  select due_at into next_due_at from belfry.schedules where due_at is not null order by due_at limit 1;
end`,
)

export const ADVANCE_FUNCTIONS = RECORD_FUNCTION

const RECORD = `select recorded, next_due_at, wakes from belfry.record_ticks(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`
const LOOK = `select belfry.now_us() / 1000,
  (select due_at from belfry.schedules where due_at is not null order by due_at limit 1)`

export async function advanceSchedules(db: Database, definitions: Definitions, request: AdvanceRequest) {
  const { limit, lookaheadMs } = request
  const { result, wakes } = await db.transaction(takeDue(limit, lookaheadMs), async (rows, tx) => {
    if (rows.length === 0) return { result: await lookAround(tx), wakes: 0 }
    await definitions.load(
      tx,
      rows.map((row) => row[4] ?? ''),
    )
    return record(tx, planAll(rows, definitions, request), Number(rows[0]?.[0]))
  })
  db.announce(wakes)
  return result
}

async function lookAround(tx: Transaction): Promise<AdvanceResult> {
  const [row] = await tx.run(LOOK, [])
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  return { now: Number(row?.[0]), schedules: 0, recorded: 0, skipped: 0, ...nextDueAt }
}

interface Planned {
  readonly before: Schedule
  readonly after: Schedule
  readonly definition: string
  readonly plan: Plan
}

function planAll(rows: readonly Row[], definitions: Definitions, { plan, lookaheadMs }: AdvanceRequest): Planned[] {
  const now = Number(rows[0]?.[0])
  return rows.map((row) => {
    const definition = row[4] ?? ''
    const before = withProgress(row, 2, definitions.get(definition))
    const made = plan(plannable(before), toUnfinished(row[1] ?? null), now, now + lookaheadMs)
    return { before, after: applyPlan(before, made, now), definition, plan: made }
  })
}

const STATES = ['waiting', 'ready', 'running'] as const

function toUnfinished(text: string | null): Unfinished[] {
  if (text === null) return []
  return (JSON.parse(text) as [number, boolean, number | null][]).map(([state, started, tick]) => ({
    ...{ state: STATES[state] ?? 'ready', started },
    ...(tick === null ? {} : { tick }),
  }))
}

interface NewTick {
  readonly tick: PlannedTick
  readonly definition: string
  readonly schedule: string
  readonly key: string | undefined
}

async function record(tx: Transaction, planned: readonly Planned[], now: number) {
  // Behind the cursor a tick is accounted for, for ever.
  const ticks: NewTick[] = []
  for (const { before, definition, plan } of planned) {
    const { key } = before.definition
    const name = key === undefined || key === 'unstamped' ? undefined : key.name
    for (const tick of plan.ticks) {
      if (tick.at > before.cursor) ticks.push({ tick, definition, schedule: before.id, key: name })
    }
  }
  const skips = planned.flatMap(({ before, plan }) => plan.skips.map((range) => ({ ...range, schedule: before.id })))
  const retracts = planned.filter(({ plan }) => plan.retractThrough !== undefined)
  const [row] = await tx.run(RECORD, [
    now,
    textArray(planned.map(({ before }) => before.id)),
    numberArray(planned.map(({ after }) => after.cursor)),
    numberArray(planned.map(({ after }) => after.remaining)),
    numberArray(planned.map(({ after }) => after.nextAt)),
    numberArray(planned.map(({ after }) => after.dueAt)),
    numberArray(planned.map(({ after }) => after.finishedAt)),
    textArray(ticks.map(({ schedule }) => schedule)),
    numberArray(ticks.map(({ definition }) => definition)),
    numberArray(ticks.map(({ tick }) => tick.at)),
    numberArray(ticks.map(({ tick }) => tick.readyAt)),
    numberArray(ticks.map(({ tick }) => tick.startBy)),
    textArray(ticks.map(({ tick }) => (tick.waits ? 't' : 'f'))),
    textArray([...new Set(ticks.flatMap(({ key }) => key ?? []))]),
    textArray(skips.map(({ schedule }) => schedule)),
    numberArray(skips.map(({ from }) => from)),
    numberArray(skips.map(({ to }) => to)),
    numberArray(skips.map(({ count }) => count)),
    textArray(skips.map(({ reason }) => reason)),
    textArray(retracts.map(({ before }) => before.id)),
    numberArray(retracts.map(({ plan }) => plan.retractThrough)),
    textArray(planned.filter(({ plan }) => plan.cancelUnfinished).map(({ before }) => before.id)),
  ])
  const skipped = skips.reduce((sum, { count }) => sum + count, 0)
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  const result: AdvanceResult = { now, schedules: planned.length, recorded: Number(row?.[0]), skipped, ...nextDueAt }
  return { result, wakes: Number(row?.[2]) }
}

const LOAD = 'select id, body from belfry.definitions where id = any ($1::bigint[])'

/**
 * Definitions that were read before. A row of theirs is never changed, only replaced by one with another number, so what
 * is known stays true. The payload is not among what planning needs.
 */
export class Definitions {
  readonly #known = new Map<string, ScheduleDefinition>()
  readonly #most: number

  constructor(most = 20_000) {
    this.#most = most
  }

  get(id: string): ScheduleDefinition {
    const known = this.#known.get(id)
    if (known === undefined) throw new Error(`definition ${id} is gone although its schedule is locked`)
    return known
  }

  async load(tx: Transaction, ids: readonly string[]): Promise<void> {
    const missing = ids.filter((id) => !this.#known.has(id))
    if (missing.length === 0) return
    if (this.#known.size + missing.length > this.#most) this.#forget(new Set(ids))
    for (const [id, body] of await tx.run(LOAD, [missing]))
      this.#known.set(id ?? '', definitionOf(body ?? '{}', 'null'))
  }

  /** The oldest go first, but none that is needed now. */
  #forget(needed: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) {
      if (this.#known.size <= this.#most / 2) return
      if (!needed.has(id)) this.#known.delete(id)
    }
  }
}
