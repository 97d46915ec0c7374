/**
 * How schedules are changed: they are read, decided upon in `core/schedules/declare.ts`, and written by one function that finds out
 * whether they are still what was read. If not, they are read and decided again. A large batch of schedules that tick all
 * the time would never get through like that, so the third time they are locked while it is decided, by the only
 * transaction that changes schedules meanwhile.
 */

import { isSoon } from '../../../core/connection/hint.js'
import type { TakeBack, UnclaimedTick } from '../../../core/schedules/declare.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Database, Row } from '../connection/database.js'
import { type Change, changesIn } from '../connection/wakes.js'
import { boolean, changes, integer, integers, listOf, sqlFunction, texts } from '../schema/sql-function.js'
import source from './change.sql'
import { SCHEDULE_COLUMNS, scheduleColumns, skipColumns, toSchedule } from './schedule-codec.js'

/**
 * Those that exist; the first row has the time even if there are none. One after the other, by their keys: a plan that was
 * made while the tables were small is kept for a while after they have grown.
 */
const READ = `select n.now_ms, s.* from (select belfry.now_us() / 1000 as now_ms) n left join lateral (
  select s.mark, (select pg_catalog.json_agg(pg_catalog.json_build_array(r.id::text, r.tick) order by r.id) from belfry.runs r
    where r.schedule = s.id and r.state < 'running' and r.origin < 'trigger' and r.attempt = 0), ${SCHEDULE_COLUMNS}
  from pg_catalog.unnest($1::text[]) as g(id)
  cross join lateral (select xmin::text as mark, * from belfry.schedules where id = g.id limit 1) s
  cross join lateral (select * from belfry.definitions where id = s.definition limit 1) d) s on true`
const READ_WIDTH = 3

/** A schedule as it was when it was read. */
export interface Seen {
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
  /** Changes with every write to the row. */
  readonly mark: string | null
}

export const NOTHING_SEEN: Seen = { schedule: undefined, unclaimed: [], mark: null }

export interface Reading {
  readonly now: number
  readonly seen: ReadonlyMap<string, Seen>
}

/** What is to become of a schedule. */
export interface ScheduleChange {
  readonly seen: Seen
  /** The schedule as it is to be; with an unchanged definition that is not written again. Undefined to remove it. */
  readonly schedule: Schedule | undefined
  readonly takeBack?: TakeBack
  readonly skips?: readonly SkipRange[]
}

export interface Decision<Outcome> {
  readonly changes: readonly ScheduleChange[]
  /** What the caller is told, given the new version of each schedule. */
  readonly outcome: (versions: ReadonlyMap<string, number>) => Outcome
}

const NO_CHANGE: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

const changeRows = listOf('schedule_change', ({ seen, schedule, takeBack, skips = [] }: ScheduleChange) => {
  const { remove, skip, reason, unrecorded } = takeBack ?? NO_CHANGE
  const id = seen.schedule?.id ?? schedule?.id ?? ''
  return {
    ...(schedule === undefined ? {} : scheduleColumns(schedule)),
    ...{ id, mark: seen.mark, removed: schedule === undefined },
    redefined: schedule !== undefined && schedule.definition !== seen.schedule?.definition,
    ...{
      unclaimed: seen.unclaimed.map(({ run }) => run),
      forgotten_ticks: remove,
      skipped_ticks: skip,
      skip_reason: reason,
    },
    skips: [...unrecorded, ...skips].map((range) => skipColumns(id, range)),
  }
})

const change = sqlFunction({
  name: 'change_schedules',
  source,
  takes: { newSchedules: changeRows, changes: changeRows, decidedAt: integer, areLocked: boolean },
  gives: { created: integers, changed: integers, hints: changes },
})

const lockAlone = sqlFunction({ name: 'lock_schedules_alone', source, takes: { scheduleIds: texts }, gives: {} })
const TRIES_WITHOUT_LOCKS = 2

type Run = (sql: string, values: readonly unknown[]) => Promise<readonly Row[]>

export interface ChangeOptions {
  readonly ids: readonly string[]
  /** Whether doing it again changes nothing more, when it is not known whether it was done. */
  readonly repeatable?: boolean
}

export async function changeSchedules<Outcome>(
  db: Database,
  { ids, repeatable = true }: ChangeOptions,
  decide: (reading: Reading) => Decision<Outcome>,
): Promise<Outcome> {
  let tries = 0

  async function readAndWrite(run: Run, areLocked: boolean) {
    const reading = await readSchedules(run, ids)
    const { changes: decided, outcome } = decide(reading)
    if (decided.length === 0) return { result: outcome(new Map()), hints: [] }
    const { versions, hints } = await write(run, decided, reading.now, areLocked)
    return { result: outcome(versions), hints }
  }

  const { result, hints } = await db.attempt(
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
  return result
}

async function readSchedules(run: Run, ids: readonly string[]): Promise<Reading> {
  const rows = await run(READ, [ids])
  const seen = new Map<string, Seen>()
  for (const row of rows) {
    const [, mark = null, unclaimed] = row
    if (mark === null) continue
    const schedule = toSchedule(row, READ_WIDTH)
    const ticks = (JSON.parse(unclaimed ?? 'null') as [string, number][] | null) ?? []
    seen.set(schedule.id, { schedule, unclaimed: ticks.map(([id, tick]) => ({ run: id, tick })), mark })
  }
  return { now: Number(rows[0]?.[0]), seen }
}

/** Writes all of it or nothing. Answers the new version of each schedule, and what to hint at. */
async function write(run: Run, decided: readonly ScheduleChange[], decidedAt: number, areLocked: boolean) {
  const made = decided.filter(({ seen }) => seen.schedule === undefined)
  const changed = decided.filter(({ seen }) => seen.schedule !== undefined)
  const [row = []] = await run(
    change.sql,
    change.values({ newSchedules: made, changes: changed, decidedAt, areLocked }),
  )
  const given = change.read(row)
  const versions = new Map<string, number>()
  for (const [at, version] of given.created.entries()) versions.set(made[at]?.schedule?.id ?? '', version)
  const kept = changed.filter(({ schedule }) => schedule !== undefined)
  for (const [at, version] of given.changed.entries()) versions.set(kept[at]?.schedule?.id ?? '', version)
  const isAnySoon = decided.some(({ schedule }) => isSoon(schedule?.dueAt, decidedAt))
  const hints: Change[] = [...changesIn(given.hints), ...(isAnySoon ? (['schedules'] as const) : [])]
  return { versions, hints }
}
