import type { Hint } from '../../../core/connection/hint.js'
import type { Connection } from './connection.js'

/** Where a statement runs, and the time that it gets as `:now`. */
export interface On {
  readonly db: Connection
  readonly now?: number
}

/** What an operation reads from. */
export interface Snapshot extends On {
  /** The store's time for the whole operation. */
  readonly now: number
}

/** One operation inside a write transaction. */
export interface Tx extends Snapshot {
  /** Lock names and schedules that the operation has freed. `locks/pass-on.ts` serves their waiters before the commit. */
  readonly freedNames: Set<string>
  readonly freedSchedules: Set<string>
  /** What to tell listeners after the commit. */
  readonly wakes: Set<Hint>
  /** How many runs became ready in this operation. When the number has grown, a claim reads the queue again. */
  readied: number
}

export function newTx(db: Connection, now: number, wakes: Set<Hint>): Tx {
  return { db, now, freedNames: new Set(), freedSchedules: new Set(), wakes, readied: 0 }
}
