/**
 * Schedules as rows: how far a schedule has got is a row of `schedules`, what its author wrote a row of `definitions`.
 * There the payload is apart from the rest, because planning never needs it.
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

/** With the schedule as `s` and its definition as `d`. */
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

/** All of a schedule, as columns of `belfry.schedule_change`. */
export function scheduleRow(schedule: Schedule) {
  const { definition } = schedule
  const { target, key, onFinish, app } = definition
  return {
    ...{ id: schedule.id, version: schedule.version, app, priority: definition.priority, keep: definition.keep },
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
export const skipRow = (schedule: string, { from, to, count, reason }: SkipRange) => ({
  ...{ schedule, from_at: from, to_at: to, count, reason },
})

export const skipCodec: RowCodec<SkipRange> = columnsOf({
  from: { ...integer, select: (column: string) => `${column}_at` },
  to: { ...integer, select: (column: string) => `${column}_at` },
  count: integer,
  reason: word<SkipReason>(),
})

/** A schedule that is due, as `take_due_schedules` gives it. */
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
  /** Its unfinished runs as text; absent when it has none, or does not mind them. */
  unfinished: optional(text),
}
export type Due = Values<typeof dueColumns>

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
  by_deadline: tick.byDeadline,
  waits: tick.waits,
  key,
}))

/** As `belfry.planned_skip`. */
export const skipRows = listOf('planned_skip', ({ schedule, skip }: { schedule: string; skip: SkipRange }) =>
  skipRow(schedule, skip),
)
