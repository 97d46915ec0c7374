/**
 * Versions of schedules. A version is also the schedule's place in the line of those that are due at the same instant, and a new
 * plan takes a new place: what was written last is last in the line.
 */
import { nextVersion } from '../../../core/schedules/next-version.js'
import { change, type Nothing, row } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import source from './counters.sql'

const selectLast = row<Nothing, { value: number }>(source, 'lastVersion')
const writeLast = change<{ version: number }>(source, 'takeVersion')

export function lastVersion(tx: Tx): number {
  return selectLast(tx, {})?.value ?? 0
}

/** The version of a schedule that is written now. `takeVersion` makes it the last one. */
export function versionNow(tx: Tx): number {
  return nextVersion(lastVersion(tx), tx.now)
}

export function takeVersion(tx: Tx, version: number): void {
  writeLast(tx, { version })
}
