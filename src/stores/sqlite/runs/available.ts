import { row } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './available.sql'

const countEngaged = row<{ key: string; limit: number }, { runs: number }>(source, 'countEngaged')

export function isAvailable(snapshot: Snapshot, key: string, limit: number): boolean {
  return (countEngaged(snapshot, { key, limit })?.runs ?? 0) < limit
}
