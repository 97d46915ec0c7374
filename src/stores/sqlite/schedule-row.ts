/** Schedules as rows. The definition stands apart, because the row is written with every tick. */
import type { Plannable } from '../../core/plan.js'
import { plannable, type Schedule, type ScheduleDefinition } from '../../core/schedule.js'
import type { Connection } from './connection.js'
import { fromText } from './run-row.js'

export const SCHEDULES = `select s.id, s.version, s.anchor, s.cursor, s.remaining, s.next_at, s.due_at, s.paused_at,
  s.pause_note, s.created_at, s.updated_at, s.finished_at, d.body, d.payload
  from belfry_schedules s join belfry_definitions d on d.id = s.definition`

type Instant = number | null
export type ScheduleRow = readonly [
  ...[id: string, version: number, anchor: number, cursor: number, remaining: Instant, nextAt: Instant],
  ...[dueAt: Instant, pausedAt: Instant, pauseNote: string | null, createdAt: number, updatedAt: number],
  ...[finishedAt: Instant, body: string, payload: string],
]

export function toSchedule(row: ScheduleRow): Schedule {
  const [id, version, anchor, cursor, remaining, nextAt, dueAt, pausedAt, pauseNote, ...rest] = row
  const [createdAt, updatedAt, finishedAt, body, payload] = rest
  return {
    ...{ id, version, definition: parseDefinition(body, payload), anchor, cursor, createdAt, updatedAt },
    ...(remaining === null ? {} : { remaining }),
    ...(nextAt === null ? {} : { nextAt }),
    ...(dueAt === null ? {} : { dueAt }),
    ...(pausedAt === null ? {} : { pausedAt }),
    ...(pauseNote === null ? {} : { pauseNote }),
    ...(finishedAt === null ? {} : { finishedAt }),
  }
}

/** The text of a definition. Its payload is kept apart, because every run has a copy. */
export function definitionBody({ payload: _, ...rest }: ScheduleDefinition): string {
  return JSON.stringify(rest)
}

function parseDefinition(body: string, payload: string): ScheduleDefinition {
  return { ...(JSON.parse(body) as Omit<ScheduleDefinition, 'payload'>), payload: fromText(payload) }
}

const GET = `${SCHEDULES} where s.id = ?`

export function getSchedule(db: Connection, id: string): Schedule | undefined {
  const row = db.get<ScheduleRow>(GET, id)
  return row === undefined ? undefined : toSchedule(row)
}

/** The part of a definition that planning depends on. */
export type PlanningRules = Omit<Plannable, 'id' | 'anchor' | 'cursor' | 'remaining' | 'pausedAt'>

const BODY = 'select body from belfry_definitions where id = ?'
const CAPACITY = 20_000

/** What was read before of definitions. Their numbers are never used again, so what is here is never out of date. */
export class Definitions {
  readonly #known = new Map<number, PlanningRules>()

  rulesOf(db: Connection, id: number): PlanningRules {
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const definition = parseDefinition(db.get<[string]>(BODY, id)?.[0] ?? '{}', 'null')
    const schedule = { definition, id: '', version: 0, anchor: 0, cursor: 0, createdAt: 0, updatedAt: 0 }
    const { id: _, anchor: __, cursor: ___, ...rules } = plannable(schedule)
    if (this.#known.size >= CAPACITY) this.#known.clear()
    this.#known.set(id, rules)
    return rules
  }

  clear(): void {
    this.#known.clear()
  }
}
