import type { Connection } from '../connection/connection.js'
import { statement } from '../connection/statements.js'
import source from './counters.sql'

type Counter = 'schedule version' | 'due line'

const lastOf = statement<{ counter: Counter }, { value: number }>(source, 'lastOf')
const advanceBy = statement<{ counter: Counter; count: number }, { value: number }>(source, 'advanceBy')

/** The last number that was taken. */
export function lastNumber(db: Connection, counter: Counter): number {
  return db.get(lastOf, { counter })?.value ?? 0
}

/** Takes the next `count` numbers, and returns the last of them. */
export function nextNumber(db: Connection, counter: Counter, count = 1): number {
  return db.get(advanceBy, { counter, count })?.value ?? 0
}
