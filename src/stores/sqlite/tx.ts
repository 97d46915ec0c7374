import type { Hint } from '../../core/hint.js'
import type { Connection } from './connection.js'
import { Counters } from './counters.js'

/** One operation inside a write transaction: the store's now, and what it has freed and must hand on. */
export interface Tx {
  readonly db: Connection
  readonly now: number
  readonly counters: Counters
  /** Names of leases and schedules whose waiters may be next. */
  readonly touchedNames: Set<string>
  readonly touchedLanes: Set<string>
  readonly wakes: Set<Hint>
  /** How many runs became ready so far: what was read of the queue before is then no longer all of it. */
  readied: number
  /** Which schedules have running ticks that are not listed; read when it is first asked for. */
  unlistedRunning?: ReadonlySet<string>
}

export function newTx(db: Connection, now: number, wakes: Set<Hint>): Tx {
  return {
    db,
    now,
    counters: new Counters(db),
    touchedNames: new Set(),
    touchedLanes: new Set(),
    wakes,
    readied: 0,
  }
}
