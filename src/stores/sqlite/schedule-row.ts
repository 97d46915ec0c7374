/** Schedules as rows. The definition stands apart, because the row is written with every tick. */

import type { Mutable } from '../../core/mutable.js'
import type { Plannable } from '../../core/plan.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedule.js'
import { fromText } from '../../core/stored-text.js'
import type { Connection } from './connection.js'

export const SCHEDULES = `select s.id, s.version, s.anchor, s.cursor, s.remaining, coalesce(s.next_at, s.due_at), s.due_at, s.paused_at,
  s.pause_note, s.created_at, s.updated_at, s.finished_at, d.body, d.payload
  from belfry_schedules s join belfry_definitions d on d.id = s.definition`

type Instant = number | null
export type ScheduleRow = readonly [
  ...[id: string, version: number, anchor: number, cursor: number, remaining: Instant, nextAt: Instant],
  ...[dueAt: Instant, pausedAt: Instant, pauseNote: string | null, createdAt: number, updatedAt: number],
  ...[finishedAt: Instant, body: string, payload: string],
]

export function toSchedule(row: ScheduleRow): Schedule {
  const [id, version, anchor, cursor, remaining, nextAt, dueAt, pausedAt, pauseNote, createdAt, updatedAt] = row
  const finishedAt = row[11]
  const definition = parseDefinition(row[12], row[13])
  const schedule: Mutable<Schedule> = { id, version, definition, anchor, cursor, createdAt, updatedAt }
  if (remaining !== null) schedule.remaining = remaining
  if (nextAt !== null) schedule.nextAt = nextAt
  if (dueAt !== null) schedule.dueAt = dueAt
  if (pausedAt !== null) schedule.pausedAt = pausedAt
  if (pauseNote !== null) schedule.pauseNote = pauseNote
  if (finishedAt !== null) schedule.finishedAt = finishedAt
  return schedule
}

/** The text of a definition. Its payload is kept apart, because every run has a copy. */
export function definitionBody(definition: ScheduleDefinition): string {
  // What is undefined is left out of the text.
  return JSON.stringify({ ...definition, payload: undefined })
}

function parseDefinition(body: string, payload: string): ScheduleDefinition {
  return { ...(JSON.parse(body) as Omit<ScheduleDefinition, 'payload'>), payload: fromText(payload) }
}

const GET = `${SCHEDULES} where s.id = ?`

export function getSchedule(db: Connection, id: string): Schedule | undefined {
  const row = db.get<ScheduleRow>(GET, id)
  return row === undefined ? undefined : toSchedule(row)
}

const BODY = 'select body from belfry_definitions where id = ?'
const CAPACITY = 20_000

/** Where a schedule's timeline has got to. */
export interface Progress {
  readonly id: string
  readonly anchor: number
  readonly cursor: number
  readonly remaining: number | null
}

/** What was read before of definitions. Their numbers are never used again, so what is here is never out of date. */
export class Definitions {
  readonly #known = new Map<number, ScheduleDefinition>()

  /** A due schedule as the planner sees it. Field by field: this is done once a tick. */
  plannable(db: Connection, definition: number, { id, anchor, cursor, remaining }: Progress): Plannable {
    const known = this.#known.get(definition) ?? this.#read(db, definition)
    const { timeline, overlap, missed, jitterMs } = known
    const schedule: Mutable<Plannable> = { id, timeline, anchor, cursor, overlap, missed, jitterMs }
    if (known.startsAt !== undefined) schedule.startsAt = known.startsAt
    if (known.endsAt !== undefined) schedule.endsAt = known.endsAt
    if (known.deadlineMs !== undefined) schedule.deadlineMs = known.deadlineMs
    if (remaining !== null) schedule.remaining = remaining
    return schedule
  }

  clear(): void {
    this.#known.clear()
  }

  #read(db: Connection, id: number): ScheduleDefinition {
    const definition = parseDefinition(db.get<[string]>(BODY, id)?.[0] ?? '{}', 'null')
    if (this.#known.size >= CAPACITY) this.#known.clear()
    this.#known.set(id, definition)
    return definition
  }
}
