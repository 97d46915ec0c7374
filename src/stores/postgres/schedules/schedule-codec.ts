/**
 * Schedules as rows: how far a schedule has got is a row of `schedules`, what its author wrote a row of `definitions`.
 * There the payload is apart from the rest, because planning never needs it.
 */
import type { Mutable } from '../../../core/mutable.js'
import type { SkipReason } from '../../../core/policies.js'
import { fromText, targetName, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Plan, SkipRange } from '../../../core/schedules/plan.js'
import type { Schedule, ScheduleDefinition } from '../../../core/schedules/schedule.js'
import type { Row } from '../connection/database.js'
import { keyColumns } from '../runs/run-codec.js'
import { listOf } from '../schema/sql-function.js'

const PROGRESS = [
  'id',
  'version',
  'anchor',
  'cursor',
  'remaining',
  'next_at',
  'due_at',
  'paused_at',
  'pause_note',
  'created_at',
  'updated_at',
  'finished_at',
] as const
const COLUMNS = [...PROGRESS, 'body', 'payload'] as const

type ColumnName = (typeof COLUMNS)[number]
const AT = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>

/** With the schedule as `s` and its definition as `d`. */
export const SCHEDULE_COLUMNS = [...PROGRESS.map((name) => `s.${name}`), 'd.body', 'd.payload'].join(', ')

export function toSchedule(row: Row, from = 0): Schedule {
  const value = (name: ColumnName) => row[from + AT[name]] ?? null
  const number = (name: ColumnName) => Number(row[from + AT[name]])
  const schedule: Mutable<Schedule> = {
    id: value('id') ?? '',
    version: number('version'),
    definition: definitionOf(value('body') ?? '{}', value('payload') ?? 'null'),
    anchor: number('anchor'),
    cursor: number('cursor'),
    createdAt: number('created_at'),
    updatedAt: number('updated_at'),
  }
  if (value('remaining') !== null) schedule.remaining = number('remaining')
  if (value('next_at') !== null) schedule.nextAt = number('next_at')
  if (value('due_at') !== null) schedule.dueAt = number('due_at')
  if (value('paused_at') !== null) schedule.pausedAt = number('paused_at')
  if (value('pause_note') !== null) schedule.pauseNote = fromText(value('pause_note') ?? 'null') as string
  if (value('finished_at') !== null) schedule.finishedAt = number('finished_at')
  return schedule
}

/** `body` says all but the payload. */
export function definitionOf(body: string, payload: string): ScheduleDefinition {
  return { ...(JSON.parse(body) as Omit<ScheduleDefinition, 'payload'>), payload: fromText(payload) }
}

/** All of a schedule, as columns of `belfry.schedule_change`. */
export function scheduleColumns(schedule: Schedule) {
  const { definition } = schedule
  const { target, key, onFinish, app } = definition
  return {
    ...{ id: schedule.id, app, priority: definition.priority, keep: definition.keep },
    // What is undefined is left out of the text.
    ...{ body: JSON.stringify({ ...definition, payload: undefined }), payload: toText(definition.payload) },
    ...{ target: targetName(target), options: targetOptions(target) },
    ...keyColumns(key),
    unstamped: key === 'unstamped',
    ...{ anchor: schedule.anchor, cursor: schedule.cursor, remaining: schedule.remaining },
    ...{ next_at: schedule.nextAt, due_at: schedule.dueAt, paused_at: schedule.pausedAt },
    pause_note: schedule.pauseNote === undefined ? undefined : toText(schedule.pauseNote),
    ...{ created_at: schedule.createdAt, updated_at: schedule.updatedAt, finished_at: schedule.finishedAt },
    minds_overlap: definition.overlap !== 'allow',
    removable: onFinish === 'remove' && app === undefined,
  }
}

/** A skip as `belfry.planned_skip`. */
export const skipColumns = (schedule: string, { from, to, count, reason }: SkipRange) => ({
  ...{ schedule, from_at: from, to_at: to, count, reason },
})

export function toSkip([from, to, count, reason]: Row): SkipRange {
  return { ...{ from: Number(from), to: Number(to), count: Number(count) }, reason: reason as SkipReason }
}

/** A schedule that is due, as `take_due_schedules` gives it. */
export interface Due {
  readonly nowMs: number
  readonly id: string
  readonly definition: number
  readonly anchor: number
  readonly cursor: number
  readonly remaining: number | undefined
  readonly dueAt: number
  readonly place: number
  readonly mindsOverlap: boolean
  /** Its unfinished runs as text; undefined when it has none, or does not mind them. */
  readonly unfinished: string | undefined
}

/** What a plan says of a due schedule. */
export interface Planned {
  readonly due: Due
  readonly plan: Plan
  /** The key that its runs must hold. */
  readonly key: string | undefined
}

/** As `belfry.schedule_progress`. Cursors only grow: a plan that lags behind moves nothing. */
export const progressRows = listOf('schedule_progress', ({ due, plan }: Planned) => ({
  schedule: due.id,
  moves: plan.cursor >= due.cursor,
  ...{ cursor: plan.cursor, remaining: plan.remaining, next_at: plan.nextAt, due_at: plan.dueAt },
  finished_at: plan.nextAt === undefined ? due.nowMs : undefined,
  retract_through: plan.retractThrough,
  cancel_unfinished: plan.cancelUnfinished ?? false,
  mind_overlap: due.mindsOverlap,
  made_from: due.unfinished,
}))

export interface PlannedTickRow extends Planned {
  readonly tick: Plan['ticks'][number]
}

/** As `belfry.planned_tick`. */
export const tickRows = listOf('planned_tick', ({ due, tick, key }: PlannedTickRow) => ({
  schedule: due.id,
  definition: due.definition,
  at: tick.at,
  ready_at: tick.readyAt === tick.at ? undefined : tick.readyAt,
  start_by: tick.startBy,
  waits: tick.waits,
  key,
}))

/** As `belfry.planned_skip`. */
export const skipRows = listOf('planned_skip', ({ schedule, skip }: { schedule: string; skip: SkipRange }) =>
  skipColumns(schedule, skip),
)
