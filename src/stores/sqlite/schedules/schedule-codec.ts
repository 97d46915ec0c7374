/** A schedule as a row of `belfry_schedules`. The only file that knows how a schedule is stored. */
import type { Mutable } from '../../../core/mutable.js'
import { fromText, targetName, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Plannable } from '../../../core/schedules/plan.js'
import { plannable, type Schedule, type ScheduleDefinition } from '../../../core/schedules/schedule.js'
import { keyColumns } from '../runs/run-codec.js'

/** The columns that a schedule is read from; `schema/tables.sql` explains them. */
export interface ScheduleRow {
  readonly id: string
  readonly version: number
  /** JSON of the definition without its payload. */
  readonly definition: string
  readonly payload: string
  readonly anchor: number
  readonly cursor: number
  readonly remaining: number | null
  readonly next_at: number | null
  readonly due_at: number | null
  readonly created_at: number
  readonly updated_at: number
  readonly paused_at: number | null
  readonly pause_note: string | null
  readonly finished_at: number | null
}

export function toSchedule(row: ScheduleRow): Schedule {
  const schedule: Mutable<Schedule> = {
    id: row.id,
    version: row.version,
    definition: { ...withoutPayload(row), payload: fromText(row.payload) },
    anchor: row.anchor,
    cursor: row.cursor,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
  if (row.remaining !== null) schedule.remaining = row.remaining
  if (row.next_at !== null) schedule.nextAt = row.next_at
  if (row.due_at !== null) schedule.dueAt = row.due_at
  if (row.paused_at !== null) schedule.pausedAt = row.paused_at
  if (row.pause_note !== null) schedule.pauseNote = row.pause_note
  if (row.finished_at !== null) schedule.finishedAt = row.finished_at
  return schedule
}

function withoutPayload({ definition }: Pick<ScheduleRow, 'definition'>): Omit<ScheduleDefinition, 'payload'> {
  return JSON.parse(definition) as Omit<ScheduleDefinition, 'payload'>
}

/** What the planner needs of a due schedule. */
export type DueRow = Pick<ScheduleRow, 'id' | 'definition' | 'anchor' | 'cursor' | 'remaining'>

export function toPlannable(row: DueRow): Plannable {
  const { id, anchor, cursor, remaining } = row
  const progress = { id, anchor, cursor, ...(remaining === null ? {} : { remaining }) }
  return plannable({ ...progress, definition: withoutPayload(row) })
}

/** The parameters of `writeSchedule` in `put.sql`. */
export type ScheduleColumns = ReturnType<typeof scheduleColumns>

export function scheduleColumns(schedule: Schedule) {
  const { definition } = schedule
  const { target, app = null } = definition
  return {
    id: schedule.id,
    version: schedule.version,
    target: targetName(target),
    app,
    // `JSON.stringify` leaves out what is undefined.
    definition: JSON.stringify({ ...definition, payload: undefined }),
    payload: toText(definition.payload),
    options: targetOptions(target),
    priority: definition.priority,
    keep: definition.keep,
    ...keyColumns(definition.key),
    anchor: schedule.anchor,
    cursor: schedule.cursor,
    remaining: schedule.remaining ?? null,
    nextAt: schedule.nextAt ?? null,
    dueAt: schedule.dueAt ?? null,
    line: schedule.version,
    createdAt: schedule.createdAt,
    updatedAt: schedule.updatedAt,
    pausedAt: schedule.pausedAt ?? null,
    pauseNote: schedule.pauseNote ?? null,
    finishedAt: schedule.finishedAt ?? null,
    // A schedule that code declares is removed when the code no longer declares it, not when it has finished.
    onFinish: app === null ? definition.onFinish : 'keep',
  }
}
