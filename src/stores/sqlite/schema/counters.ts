import { nextVersion } from '../../../core/schedules/next-version.js'
import type { Connection } from '../connection/connection.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import source from './counters.sql'

type Counter = 'schedule version' | 'due line'

const lastOf = statement<{ counter: Counter }, { value: number }>(source, 'lastOf')
const raiseTo = statement<{ counter: Counter; value: number }>(source, 'raiseTo')
const advanceBy = statement<{ counter: Counter; count: number }, { value: number }>(source, 'advanceBy')

/** The last number that was taken. */
export function lastNumber(db: Connection, counter: Counter): number {
  return db.get(lastOf, { counter })?.value ?? 0
}

/** Takes the next `count` numbers, and returns the last of them. */
export function nextNumber(db: Connection, counter: Counter, count = 1): number {
  return db.get(advanceBy, { counter, count })?.value ?? 0
}

/** The version of a schedule that is written now. `takeVersion` makes it the last one. */
export function versionNow({ db, now }: Tx): number {
  return nextVersion(lastNumber(db, 'schedule version'), now)
}

export function takeVersion(db: Connection, version: number): void {
  db.run(raiseTo, { counter: 'schedule version', value: version })
}
