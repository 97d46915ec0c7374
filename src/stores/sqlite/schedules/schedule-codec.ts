/** A schedule as a row of `belfry_schedules`. The only file that knows how a schedule is stored. */
import type { Mutable } from '../../../core/mutable.js'
import type { Plannable } from '../../../core/plan.js'
import { plannable, type Schedule, type ScheduleDefinition } from '../../../core/schedule.js'
import { fromText, targetName, targetOptions, toText } from '../../../core/stored-text.js'
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

export function toSchedule(row: ScheduleRow, payload = fromText(row.payload)): Schedule {
  const schedule: Mutable<Schedule> = {
    id: row.id,
    version: row.version,
    definition: { ...(JSON.parse(row.definition) as Omit<ScheduleDefinition, 'payload'>), payload },
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

/** The part that the planner looks at. The payload is not part of it, and may be large. */
export function toPlannable(row: ScheduleRow): Plannable {
  return plannable(toSchedule(row, null))
}

/** The parameters of `writeSchedule` in `put.sql`. */
export type ScheduleColumns = ReturnType<typeof scheduleColumns>

export function scheduleColumns(schedule: Schedule, line: number) {
  const { id, version, definition, anchor, cursor, createdAt, updatedAt } = schedule
  const { target, app = null, priority, keep, onFinish } = definition
  return {
    ...{ id, version, app, anchor, cursor, line, priority, keep, createdAt, updatedAt },
    ...keyColumns(definition.key),
    target: targetName(target),
    options: targetOptions(target),
    // What is undefined is left out of the text.
    definition: JSON.stringify({ ...definition, payload: undefined }),
    payload: toText(definition.payload),
    remaining: schedule.remaining ?? null,
    nextAt: schedule.nextAt ?? null,
    dueAt: schedule.dueAt ?? null,
    pausedAt: schedule.pausedAt ?? null,
    pauseNote: schedule.pauseNote ?? null,
    finishedAt: schedule.finishedAt ?? null,
    // A schedule that code declares goes when the code no longer declares it.
    onFinish: app === null ? onFinish : 'keep',
  }
}
