/**
 * How schedules change: they are read, decided upon in `core/schedules/declare.ts`, and written by one function, which
 * checks whether they are still as they were read. If not, they are read and decided again. A large batch of schedules
 * that tick all the time might never succeed this way. So the third try first locks the schedules, in a transaction
 * that excludes all other changes of schedules.
 */

import { isSoon } from '../../../core/connection/hint.js'
import type { TakeBack, UnclaimedTick } from '../../../core/schedules/declare.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Database, Row } from '../connection/database.js'
import {
  boolean,
  changes,
  columnsOf,
  integer,
  json,
  listOf,
  optional,
  sqlFunction,
  text,
  texts,
} from '../schema/sql-function.js'
import source from './change.sql'
import { scheduleCodec, scheduleRow, skipRow } from './schedule-codec.js'

/** A schedule as it was when it was read. */
export interface Seen {
  /** Undefined if no schedule has this id. */
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
  /** Identifies the version of the row (`xmin`): every write to the row changes it. */
  readonly mark?: string
  /** The id of its definition. */
  readonly definition?: number
  /** The version and the definition's id that a change gives the schedule. */
  readonly nextVersion: number
  readonly nextDefinition: number
}

const reading = columnsOf({
  nowMs: integer,
  wanted: text,
  nextVersion: integer,
  nextDefinition: integer,
  mark: optional(text),
  definition: optional(integer),
  unclaimed: optional(json<[string, number][]>()),
})

/**
 * Returns one row for each id. Each schedule is looked up by its key, because a plan that was made while the tables
 * were small is kept for a while after they have grown.
 */
const READ = `with now as materialized (select belfry.now_us() as now_us, pg_catalog.random() as batch)
  select ${reading.select('r')}, ${scheduleCodec.select('s')}
  from pg_catalog.unnest($1::text[]) as g(id)
  cross join now n
  left join lateral (select xmin::text as mark, * from belfry.schedules where id = g.id limit 1) s on true
  left join lateral (select * from belfry.definitions where id = s.definition limit 1) d on true
  cross join lateral (select g.id as wanted, pg_catalog.nextval('belfry.versions') as count) c
  cross join lateral (select n.now_us / 1000 as now_ms, c.wanted, s.mark, s.definition,
    greatest(s.version + 1, n.now_us + c.count) as next_version, belfry.definition_id(c.count, n.batch) as next_definition, (
      select pg_catalog.json_agg(pg_catalog.json_build_array(u.id::text, u.tick) order by u.id) from belfry.runs u
      where u.schedule = s.id and u.state < 'running' and u.origin < 'trigger' and u.attempt = 0) as unclaimed) r`

/** A decision about one schedule. */
export interface ScheduleChange {
  readonly seen: Seen
  /** The new state of the schedule; undefined to remove it. An unchanged definition is not written again. */
  readonly schedule: Schedule | undefined
  readonly takeBack?: TakeBack
  readonly skips?: readonly SkipRange[]
}

export interface Decision<Result> {
  readonly changes: readonly ScheduleChange[]
  /** What the caller of `changeSchedules` gets. */
  readonly result: Result
}

const NOTHING: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

const changeRows = listOf('schedule_change', ({ seen, schedule, takeBack = NOTHING, skips = [] }: ScheduleChange) => {
  const id = seen.schedule?.id ?? schedule?.id ?? ''
  const isKept = schedule !== undefined && schedule.definition === seen.schedule?.definition
  return {
    ...(schedule === undefined ? {} : scheduleRow(schedule)),
    ...{ id, mark: seen.mark, removed: schedule === undefined, redefined: schedule !== undefined && !isKept },
    definition: isKept ? seen.definition : seen.nextDefinition,
    unclaimed: seen.unclaimed.map(({ run }) => run),
    forgotten_ticks: takeBack.remove,
    skipped_ticks: takeBack.skip,
    skip_reason: takeBack.reason,
    skips: [...takeBack.unrecorded, ...skips].map((range) => skipRow(id, range)),
  }
})

const change = sqlFunction({
  name: 'change_schedules',
  source,
  takes: { changes: changeRows, decidedAt: integer, areLocked: boolean },
  gives: { hints: changes },
})

const lockAlone = sqlFunction({ name: 'lock_schedules_alone', source, takes: { scheduleIds: texts }, gives: {} })
const TRIES_WITHOUT_LOCKS = 2

type Run = (sql: string, values: readonly unknown[]) => Promise<readonly Row[]>

export interface ChangeOptions {
  readonly ids: readonly string[]
  /** Whether the change may be repeated after a lost reply. */
  readonly repeatable?: boolean
}

export async function changeSchedules<Result>(
  db: Database,
  { ids, repeatable = true }: ChangeOptions,
  decide: (now: number, seen: ReadonlyMap<string, Seen>) => Decision<Result>,
): Promise<Result> {
  let tries = 0

  async function readAndWrite(run: Run, areLocked: boolean) {
    const { now, seen } = await readSchedules(run, ids)
    const decision = decide(now, seen)
    if (decision.changes.length === 0) return { ...decision, now, hints: '{}' }
    const [row = []] = await run(change.sql, change.values({ changes: decision.changes, decidedAt: now, areLocked }))
    return { ...decision, now, hints: change.read(row).hints }
  }

  const {
    result,
    changes: made,
    now,
    hints,
  } = await db.attempt(
    () => {
      tries += 1
      const options = { repeatable, patience: 'patient' } as const
      if (tries <= TRIES_WITHOUT_LOCKS) {
        return readAndWrite((sql, values) => db.send(sql, values, { patience: 'patient' }), false)
      }
      return db.transaction(
        '',
        async (_, tx) => {
          await tx.run(lockAlone.sql, lockAlone.values({ scheduleIds: ids }))
          return readAndWrite((sql, values) => tx.run(sql, values), true)
        },
        options,
      )
    },
    { repeatable },
  )
  db.announce(hints)
  if (made.some(({ schedule }) => isSoon(schedule?.dueAt, now))) db.announce(['schedules'])
  return result
}

async function readSchedules(run: Run, ids: readonly string[]) {
  const rows = await run(READ, [ids])
  const seen = rows.map((row): readonly [string, Seen] => {
    const { nowMs: _, wanted, unclaimed = [], ...marks } = reading.read(row)
    const schedule = marks.mark === undefined ? undefined : scheduleCodec.read(row.slice(reading.width))
    return [wanted, { ...marks, schedule, unclaimed: unclaimed.map(([id, tick]) => ({ run: id, tick })) }]
  })
  return { now: rows.slice(0, 1).map(reading.read)[0]?.nowMs ?? 0, seen: new Map(seen) }
}
