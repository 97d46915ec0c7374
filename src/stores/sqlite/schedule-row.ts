/** Schedules as rows. The definition stands apart, because the row is written with every tick. */
import type { Schedule, ScheduleDefinition } from '../../core/schedule.js'
import type { Connection } from './connection.js'

export interface ScheduleRecord {
  readonly schedule: Schedule
  /** The number of its definition: a definition never changes, it is replaced. */
  readonly definition: number
  /** As text, the same for all its runs. */
  readonly payload: string
}

const FIELDS = `s.id, s.version, s.anchor, s.cursor, s.remaining, s.next_at, s.due_at, s.paused_at, s.pause_note,
  s.created_at, s.updated_at, s.finished_at, s.definition`

/** Without the definition: for those whose definition is known here already. */
export const SCHEDULES = `select ${FIELDS} from belfry_schedules s`
export const WHOLE_SCHEDULES = `select ${FIELDS}, d.body from belfry_schedules s
  join belfry_definitions d on d.id = s.definition`

type Instant = number | null
export type ScheduleRow = readonly [
  ...[id: string, version: number, anchor: number, cursor: number, remaining: Instant, nextAt: Instant],
  ...[dueAt: Instant, pausedAt: Instant, pauseNote: string | null, createdAt: number, updatedAt: number],
  ...[finishedAt: Instant, definition: number],
]
export type WholeScheduleRow = readonly [...ScheduleRow, body: string]

export function toSchedule(row: WholeScheduleRow): Schedule {
  return scheduleOf(row, JSON.parse(row[13]) as ScheduleDefinition)
}

function scheduleOf(row: ScheduleRow | WholeScheduleRow, definition: ScheduleDefinition): Schedule {
  const [id, version, anchor, cursor, remaining, nextAt, dueAt, pausedAt, pauseNote, createdAt, updatedAt, finishedAt] =
    row
  return {
    ...{ id, version, definition, anchor, cursor, createdAt, updatedAt },
    ...(remaining === null ? {} : { remaining }),
    ...(nextAt === null ? {} : { nextAt }),
    ...(dueAt === null ? {} : { dueAt }),
    ...(pausedAt === null ? {} : { pausedAt }),
    ...(pauseNote === null ? {} : { pauseNote }),
    ...(finishedAt === null ? {} : { finishedAt }),
  }
}

interface Definition {
  readonly definition: ScheduleDefinition
  readonly payload: string
}

const BODY = 'select body from belfry_definitions where id = ?'
const CAPACITY = 20_000

/** Definitions that were read before. Their numbers are never used again, so what is here is never out of date. */
export class Definitions {
  readonly #known = new Map<number, Definition>()

  record(db: Connection, row: ScheduleRow): ScheduleRecord {
    const { definition, payload } = this.#known.get(row[12]) ?? this.#read(db, row[12])
    return { schedule: scheduleOf(row, definition), definition: row[12], payload }
  }

  clear(): void {
    this.#known.clear()
  }

  #read(db: Connection, id: number): Definition {
    const definition = JSON.parse(db.get<[string]>(BODY, id)?.[0] ?? 'null') as ScheduleDefinition
    const read = { definition, payload: JSON.stringify(definition.payload) }
    if (this.#known.size >= CAPACITY) this.#known.clear()
    this.#known.set(id, read)
    return read
  }
}

const GET = `${WHOLE_SCHEDULES} where s.id = ?`

export function getSchedule(db: Connection, id: string): Schedule | undefined {
  const row = db.get<WholeScheduleRow>(GET, id)
  return row === undefined ? undefined : toSchedule(row)
}
