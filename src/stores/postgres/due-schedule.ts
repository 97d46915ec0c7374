import type { Row } from './connection/database.js'

/** The columns of a due schedule, after the time. */
export interface Due {
  /** Its unfinished runs as text; null when it has none, or does not ask for them. */
  readonly unfinished: string | null
  /** Where its row is. It cannot move: it is locked. */
  readonly row: string
  readonly id: string
  readonly definition: number
  readonly anchor: number
  readonly cursor: number
  readonly remaining: string | null
  /** Whether its plan depends on its unfinished runs. */
  readonly mindsOverlap: boolean
}

/** Written out, as all that is done once a tick. */
export function toDue(row: Row): Due {
  return {
    unfinished: row[1] ?? null,
    row: row[2] ?? '',
    id: row[3] ?? '',
    definition: Number(row[4]),
    anchor: Number(row[5]),
    cursor: Number(row[6]),
    remaining: row[7] ?? null,
    mindsOverlap: row[10] === 't',
  }
}
