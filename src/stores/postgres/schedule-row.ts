/** Schedules as rows. The definition is apart, its payload apart from it: planning needs neither again and again. */

import type { Mutable } from '../../core/mutable.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedule.js'
import { fromText, targetName, targetOptions, toText } from '../../core/stored-text.js'
import type { Row } from './connection/database.js'
import { keepNumber, keyValues } from './run-row.js'

/** With the schedule as `s`: how far it has got. */
export const PROGRESS_COLUMNS = `s.id, s.version, s.definition, s.anchor, s.cursor, s.remaining, s.next_at, s.due_at,
  s.paused_at, s.pause_note, s.created_at, s.updated_at, s.finished_at`
const PROGRESS_WIDTH = 13

/** With its definition as `d`: all of it. */
export const SCHEDULE_COLUMNS = `${PROGRESS_COLUMNS}, d.body, d.payload`

/** A new place in the line of those that are due at the same instant. */
export const PLACE = `nextval('belfry.places')`

/** Reads the columns of `PROGRESS_COLUMNS`, from a place in the row on. Done once a tick, so it is written out. */
export function withProgress(row: Row, at: number, definition: ScheduleDefinition): Schedule {
  const schedule: Mutable<Schedule> = {
    id: row[at] ?? '',
    version: Number(row[at + 1]),
    definition,
    anchor: Number(row[at + 3]),
    cursor: Number(row[at + 4]),
    createdAt: Number(row[at + 10]),
    updatedAt: Number(row[at + 11]),
  }
  if (row[at + 5] !== null) schedule.remaining = Number(row[at + 5])
  if (row[at + 6] !== null) schedule.nextAt = Number(row[at + 6])
  if (row[at + 7] !== null) schedule.dueAt = Number(row[at + 7])
  if (row[at + 8] !== null) schedule.pausedAt = Number(row[at + 8])
  if (row[at + 9] !== null) schedule.pauseNote = fromText(row[at + 9] ?? 'null') as string
  if (row[at + 12] !== null) schedule.finishedAt = Number(row[at + 12])
  return schedule
}

/** Reads the columns of `SCHEDULE_COLUMNS`. */
export function toSchedule(row: Row, at = 0): Schedule {
  const [body = null, payload = null] = row.slice(at + PROGRESS_WIDTH)
  return withProgress(row, at, definitionOf(body ?? '{}', payload ?? 'null'))
}

/** `body` says all but the payload. */
export function definitionOf(body: string, payload: string): ScheduleDefinition {
  return { ...(JSON.parse(body) as Omit<ScheduleDefinition, 'payload'>), payload: fromText(payload) }
}

/** All of a schedule as columns of its two rows. Written out, because rest and spread are slow for thousands. */
export function scheduleValues(schedule: Schedule) {
  const { definition } = schedule
  const { target, priority, keep, key, overlap, onFinish, app = null } = definition
  const [keyName, keyLimit, keyWaits] = keyValues(key)
  return {
    id: schedule.id,
    app,
    // What is undefined is left out of the text.
    body: JSON.stringify({ ...definition, payload: undefined }),
    payload: toText(definition.payload),
    target: targetName(target),
    options: targetOptions(target),
    priority,
    keep: keepNumber(keep),
    key: keyName,
    key_limit: keyLimit,
    key_waits: keyWaits,
    unstamped: key === 'unstamped',
    anchor: schedule.anchor,
    cursor: schedule.cursor,
    remaining: schedule.remaining ?? null,
    next_at: schedule.nextAt ?? null,
    due_at: schedule.dueAt ?? null,
    paused_at: schedule.pausedAt ?? null,
    pause_note: schedule.pauseNote === undefined ? null : toText(schedule.pauseNote),
    created_at: schedule.createdAt,
    updated_at: schedule.updatedAt,
    finished_at: schedule.finishedAt ?? null,
    minds_overlap: overlap !== 'allow',
    removable: onFinish === 'remove' && app === null,
  }
}
