import { statement } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './available.sql'

type Key = { key: string; limit: number }
type Count = { runs: number }

const countBegun = statement<Key, Count>(source, 'countBegun')
const countReady = statement<Key & { now: number }, Count>(source, 'countReady')
const countWaiting = statement<Key & { now: number }, Count>(source, 'countWaiting')

export function isAvailable(snapshot: Snapshot, key: string, limit: number): boolean {
  return countEngaged(snapshot, key, limit) < limit
}

/** How many runs of a key are due, or began and have not ended; counting stops at the limit. */
export function countEngaged({ db, now }: Snapshot, key: string, limit: number): number {
  let runs = db.get(countBegun, { key, limit })?.runs ?? 0
  if (runs < limit) runs += db.get(countReady, { key, now, limit })?.runs ?? 0
  if (runs < limit) runs += db.get(countWaiting, { key, now, limit })?.runs ?? 0
  return runs
}
