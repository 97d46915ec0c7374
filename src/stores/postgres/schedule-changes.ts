/**
 * How a schedule is written: it is read, decided upon in `core/declare.ts`, and written by one function that finds out
 * whether it is still what was read.
 */
import type { TakeBack, UnclaimedTick } from '../../core/declare.js'
import { isSoon } from '../../core/hint.js'
import type { SkipRange } from '../../core/plan.js'
import type { Schedule } from '../../core/schedule.js'
import { sparseArray, sparseTexts, textArray } from './connection/array-text.js'
import { operation, step } from './connection/sql-function.js'
import { WAKE_SCHEDULES } from './connection/wakes.js'
import { giveUp, takeRuns } from './lock-order.js'
import { IS_TICK } from './run-row.js'
import { PLACE, SCHEDULE_COLUMNS, scheduleValues, toSchedule } from './schedule-row.js'
import { type Access, HOLD_FUNCTION, WITH_OTHERS } from './transactions/with-schedules.js'

/**
 * Those that exist; the first row has the time even if there are none. One after the other, by their keys: a plan that was
 * made while the tables were small is kept for a while after they have grown.
 */
const READ = `select n.now_ms, s.* from (select belfry.now_us() / 1000 as now_ms) n left join lateral (
  select s.mark, (select json_agg(json_build_array(r.id::text, r.tick) order by r.id) from belfry.runs r
    where r.schedule = s.id and r.state < 3 and not r.running and r.${IS_TICK} and r.attempt = 0), ${SCHEDULE_COLUMNS}
  from unnest($1::text[]) as g(id)
  cross join lateral (select xmin::text as mark, * from belfry.schedules where id = g.id limit 1) s
  cross join lateral (select * from belfry.definitions where id = s.definition limit 1) d) s on true`

/** A schedule as it was when it was read. */
export interface Seen {
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
  /** Changes with every write to the row. */
  readonly mark: string | null
}

export interface Reading {
  readonly now: number
  readonly seen: ReadonlyMap<string, Seen>
}

export async function readSchedules({ run }: Access, ids: readonly string[]): Promise<Reading> {
  const rows = await run(READ, [textArray(ids)])
  const seen = new Map<string, Seen>()
  for (const row of rows) {
    const [, mark = null, unclaimed] = row
    if (mark === null) continue
    const schedule = toSchedule(row, 3)
    const ticks = JSON.parse(unclaimed ?? 'null') as [string, number][] | null
    seen.set(schedule.id, { schedule, unclaimed: (ticks ?? []).map(([run, tick]) => ({ run, tick })), mark })
  }
  return { now: Number(rows[0]?.[0]), seen }
}

/** What is to become of a schedule. */
export interface Change {
  readonly seen: Seen
  /** The schedule as it is to be; with an unchanged definition that is not written again. Undefined to remove it. */
  readonly schedule: Schedule | undefined
  readonly takeBack?: TakeBack
  readonly skips?: readonly SkipRange[]
}

/** Whoever was faster made this decision void. Looked for, and tried again, as a serialization failure. */
const VOID = giveUp('the schedule was changed meanwhile')

/** Takes ticks that were never claimed back: some as if they had never been recorded, some as skipped. */
const TAKE_BACK = step(
  'take_back(v_schedule text, v_unclaimed bigint[], v_remove bigint[], v_skip bigint[], v_reason text, v_now bigint)',
  'text[]',
  `
declare
  v_names text[];
  v_found bigint[];
  r belfry.runs;
begin
  ${takeRuns('v_found', `schedule = v_schedule and state < 3 and not running and ${IS_TICK} and attempt = 0`)}
  if v_found <> v_unclaimed then ${VOID}; end if;
  v_names := array(select key from belfry.runs where id = any (v_found) and key is not null);
  perform belfry.take_names(v_names);
  for r in select * from belfry.runs where id = any (v_skip) order by id loop
    perform belfry.end_run(r, 6, v_now, v_reason, null, null);
  end loop;
  delete from belfry.runs where id = any (v_remove);
  return v_names;
end`,
)

const DEFINITION =
  'app text, body text, payload text, target text, options text, priority integer, keep smallint, key text, key_limit integer, key_waits boolean, unstamped boolean'
const DEFINITION_NAMES = 'app, body, payload, target, options, priority, keep, key, key_limit, key_waits, unstamped'
const PROGRESS =
  'anchor bigint, cursor bigint, remaining bigint, next_at bigint, due_at bigint, paused_at bigint, pause_note text, created_at bigint, updated_at bigint, finished_at bigint'
const PROGRESS_NAMES =
  'anchor, cursor, remaining, next_at, due_at, paused_at, pause_note, created_at, updated_at, finished_at'
const OWN = 'minds_overlap boolean, removable boolean'
const OWN_NAMES = 'minds_overlap, removable'

/** New schedules, column by column: what makes a schedule, and where it begins. */
const NEW = {
  ...{ id: 'text', app: 'text', body: 'text', payload: 'text', target: 'text', options: 'text', priority: 'integer' },
  ...{ keep: 'smallint', key: 'text', key_limit: 'integer', key_waits: 'boolean', unstamped: 'boolean' },
  ...{ anchor: 'bigint', cursor: 'bigint', remaining: 'bigint', next_at: 'bigint', due_at: 'bigint' },
  ...{ minds_overlap: 'boolean', removable: 'boolean' },
} as const
const NEW_NAMES = Object.keys(NEW) as (keyof typeof NEW)[]
const NEW_PARAMETERS = Object.entries(NEW).map(([name, type]) => `p_${name} ${type}[]`)
const BEGINNING = 'anchor, cursor, remaining, next_at, due_at, minds_overlap, removable'

/** All at once. If another has made one of them meanwhile, nothing is written. A definition has its version's number. */
const CREATE = `
  with given as materialized (
    select *, nextval('belfry.versions') as version, ${PLACE} as place
    from unnest(${NEW_NAMES.map((name) => `p_${name}`).join(', ')}) with ordinality as g(${NEW_NAMES.join(', ')}, at)
  ), defined as (
    insert into belfry.definitions (id, schedule, ${DEFINITION_NAMES}) select version, id, ${DEFINITION_NAMES} from given
  ), made as (
    insert into belfry.schedules (id, version, definition, place, created_at, updated_at, ${BEGINNING})
    select id, version, version, place, v_now, v_now, ${BEGINNING} from given order by id collate "C"
  )
  select array_agg(version order by at) into created from given`

const CHANGE_FUNCTION = operation(
  `change_schedules(v_held boolean, v_now bigint, v_changed json, ${NEW_PARAMETERS.join(', ')},
    out created bigint[], out changed bigint[], out wakes integer)`,
  'record',
  `
declare
  v_us bigint := v_now * 1000;
  v_names text[] := '{}';
  v_lanes text[] := '{}';
  v_version bigint;
  v_definition bigint;
  v_old bigint;
  r belfry.runs;
  g record;
begin
  perform belfry.durable();
  perform ${WITH_OTHERS};
  wakes := 0;
  changed := '{}';
  if cardinality(p_id) > 0 then ${CREATE}; end if;
  if v_changed is null then return; end if;
  -- Not twice: what came in between would be waited for out of turn.
  if not v_held then
    perform belfry.hold_schedules(array(select value ->> 'id' from json_array_elements(v_changed)));
  end if;
  for g in select * from json_to_recordset(v_changed) as g(id text, mark text, gone boolean, redefined boolean,
    unclaimed json, remove json, skip json, reason text, skips json, ${DEFINITION}, ${PROGRESS}, ${OWN})
  loop
    select definition into v_old from belfry.schedules where id = g.id and xmin::text = g.mark;
    if not found then ${VOID}; end if;
    v_names := v_names || belfry.take_back(g.id, array(select value::bigint from json_array_elements_text(g.unclaimed)),
      array(select value::bigint from json_array_elements_text(g.remove)),
      array(select value::bigint from json_array_elements_text(g.skip)), g.reason, v_now);
    insert into belfry.skips (schedule, from_at, to_at, count, reason, recorded_at)
      select g.id, k."from", k."to", k.count, k.reason, v_now
      from json_to_recordset(g.skips) as k("from" bigint, "to" bigint, count bigint, reason text);
    v_lanes := v_lanes || g.id;
    v_definition := v_old;
    if g.gone then
      v_names := v_names || belfry.cancel_ticks(g.id, v_now);
      delete from belfry.schedules where id = g.id;
      delete from belfry.definitions where id = v_old;
      changed := changed || null::bigint;
      continue;
    end if;
    v_version := nextval('belfry.versions');
    if g.redefined then
      v_definition := v_version;
      delete from belfry.definitions where id = v_old;
      insert into belfry.definitions (id, schedule, ${DEFINITION_NAMES})
        values (v_definition, g.id, ${list('g', DEFINITION_NAMES)});
    end if;
    update belfry.schedules set version = v_version, definition = v_definition, place = ${PLACE},
      (${PROGRESS_NAMES}) = row(${list('g', PROGRESS_NAMES)}),
      (${OWN_NAMES}) = row(${list('g', OWN_NAMES)}) where id = g.id;
    changed := changed || v_version;
  end loop;
  wakes := wakes | case when cardinality(v_lanes) > 0 then 16 else 0 end | belfry.hand_on(v_names, v_lanes, v_us, 'give up');
end`,
)

/** A removed schedule's runs between attempts. Runs that go on by themselves are not touched. */
const CANCEL_TICKS = step(
  'cancel_ticks(v_schedule text, v_now bigint)',
  'text[]',
  `
declare
  v_names text[];
  v_runs bigint[];
  r belfry.runs;
begin
  ${takeRuns('v_runs', `schedule = v_schedule and state < 3 and not running and ${IS_TICK} and attempt > 0`)}
  v_names := array(select key from belfry.runs where id = any (v_runs) and key is not null);
  perform belfry.take_names(v_names);
  for r in select * from belfry.runs where id = any (v_runs) order by id loop
    perform belfry.end_run(r, 5, v_now, null, null, null);
  end loop;
  return v_names;
end`,
)

export const SCHEDULE_CHANGE_FUNCTIONS = [HOLD_FUNCTION, TAKE_BACK, CANCEL_TICKS, CHANGE_FUNCTION].join('\n')

function list(of: string, names: string): string {
  return names
    .split(', ')
    .map((name) => `${of}.${name}`)
    .join(', ')
}

const CHANGE = `select array_to_json(created), array_to_json(changed), wakes
  from belfry.change_schedules($1, $2, $3, ${NEW_NAMES.map((_, at) => `$${at + 4}`).join(', ')})`

/** Writes all of it or nothing. Answers the new version of each schedule, and what to hint at. */
export async function changeSchedules(
  { run, holds }: Access,
  changes: readonly Change[],
  { now }: Pick<Reading, 'now'>,
): Promise<{ readonly versions: ReadonlyMap<string, number>; readonly wakes: number }> {
  const made = changes.flatMap(({ seen, schedule }) => (seen.schedule === undefined && schedule ? [schedule] : []))
  const changed = changes.filter(({ seen }) => seen.schedule !== undefined)
  const given = changed.length === 0 ? null : JSON.stringify(changed.map(changedRow))
  const [row] = await run(CHANGE, [holds, now, given, ...newColumns(made)])
  const versions = new Map<string, number>()
  for (const [at, version] of numbersOf(row?.[0]).entries()) versions.set(made[at]?.id ?? '', version)
  for (const [at, version] of numbersOf(row?.[1]).entries()) versions.set(changed[at]?.seen.schedule?.id ?? '', version)
  const isAnySoon = changes.some(({ schedule }) => isSoon(schedule?.dueAt, now))
  return { versions, wakes: Number(row?.[2]) | (isAnySoon ? WAKE_SCHEDULES : 0) }
}

function numbersOf(text: string | null | undefined): number[] {
  return JSON.parse(text ?? '[]') as number[]
}

function newColumns(schedules: readonly Schedule[]): string[] {
  const rows = schedules.map(scheduleValues)
  return NEW_NAMES.map((name) => {
    const values = rows.map((row) => row[name])
    return NEW[name] === 'text' ? sparseTexts(values as (string | null)[]) : sparseArray(values.map(plainValue))
  })
}

function plainValue(value: string | number | boolean | null): string | number | null {
  return typeof value === 'boolean' ? String(value) : value
}

function changedRow({ seen, schedule, takeBack, skips = [] }: Change) {
  const { remove = [], skip = [], reason = null, unrecorded = [] } = takeBack ?? {}
  return {
    ...(schedule === undefined ? {} : scheduleValues(schedule)),
    ...{ id: seen.schedule?.id, mark: seen.mark, gone: schedule === undefined, remove, skip, reason },
    redefined: schedule !== undefined && schedule.definition !== seen.schedule?.definition,
    unclaimed: seen.unclaimed.map(({ run }) => run),
    skips: [...unrecorded, ...skips],
  }
}
