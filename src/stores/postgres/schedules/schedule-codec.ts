/**
 * Schedules as rows: a schedule's progress is a row of `schedules`, its definition a row of `definitions`. The payload
 * has its own column there, because planning never needs it.
 */
import type { SkipReason } from '../../../core/policies.js'
import { targetName, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Plan, SkipRange } from '../../../core/schedules/plan.js'
import type { Schedule, ScheduleDefinition } from '../../../core/schedules/schedule.js'
import { keyColumns, stored } from '../runs/run-codec.js'
import {
  boolean,
  columnsOf,
  integer,
  json,
  listOf,
  optional,
  type RowCodec,
  text,
  type Values,
  word,
} from '../schema/sql-function.js'

/** The columns of a schedule. A query must use the alias `s` for its row of `schedules`, and `d` for its definition. */
const columns = columnsOf({
  id: text,
  version: integer,
  anchor: integer,
  cursor: integer,
  remaining: optional(integer),
  nextAt: optional(integer),
  dueAt: optional(integer),
  pausedAt: optional(integer),
  pauseNote: optional(json<string>()),
  createdAt: integer,
  updatedAt: integer,
  finishedAt: optional(integer),
  body: { ...json<Omit<ScheduleDefinition, 'payload'>>(), select: () => 'd.body' },
  payload: { ...stored, select: () => 'd.payload' },
})

export const scheduleCodec: RowCodec<Schedule> = {
  select: columns.select,
  read: (row) => {
    const { body, payload, ...schedule } = columns.read(row)
    return { ...schedule, definition: { ...body, payload } }
  },
}

/** All columns of a schedule, for `belfry.schedule_change`. */
export function scheduleRow(schedule: Schedule) {
  const { definition } = schedule
  const { target, key, onFinish, app } = definition
  return {
    ...{ id: schedule.id, version: schedule.version, app, priority: definition.priority, keep: definition.keep },
    // JSON.stringify leaves out the undefined payload.
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

/** A row of `belfry.planned_skip`. */
export const skipRow = (schedule: string, { from, to, count, reason }: SkipRange) => ({
  ...{ schedule, from_at: from, to_at: to, count, reason },
})

export const skipCodec: RowCodec<SkipRange> = columnsOf({
  from: { ...integer, select: (column: string) => `${column}_at` },
  to: { ...integer, select: (column: string) => `${column}_at` },
  count: integer,
  reason: word<SkipReason>(),
})

/** A due schedule, as `take_due_schedules` returns it. */
export const dueColumns = {
  nowMs: integer,
  id: text,
  definition: integer,
  anchor: integer,
  cursor: integer,
  remaining: optional(integer),
  dueAt: integer,
  place: integer,
  mindsOverlap: boolean,
  /** The schedule's unfinished runs as text. Absent if it has none, or if its overlap policy is `allow`. */
  unfinished: optional(text),
}
export type Due = Values<typeof dueColumns>

/** A due schedule with its plan. */
export interface Planned {
  readonly due: Due
  readonly plan: Plan
  /** The exclusive key of the schedule's runs. */
  readonly key: string | undefined
}

/** Rows of `belfry.schedule_progress`. A cursor never moves back, so a plan whose cursor is lower moves nothing. */
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

/** Rows of `belfry.planned_tick`. */
export const tickRows = listOf('planned_tick', ({ due, tick, key }: PlannedTickRow) => ({
  schedule: due.id,
  definition: due.definition,
  at: tick.at,
  ready_at: tick.readyAt === tick.at ? undefined : tick.readyAt,
  start_by: tick.startBy,
  by_deadline: tick.byDeadline,
  waits: tick.waits,
  key,
}))

/** Rows of `belfry.planned_skip`. */
export const skipRows = listOf('planned_skip', ({ schedule, skip }: { schedule: string; skip: SkipRange }) =>
  skipRow(schedule, skip),
)
