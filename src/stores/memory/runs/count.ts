import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { ownerOf } from '../../../core/runs/run.js'
import type { CountQuery } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import type { RunRecord } from './run-codec.js'

export function countRuns(state: MemoryState, { prefix, limit }: CountQuery): number {
  checkPageLimit(limit)
  let count = 0
  for (const owner of state.openOwners.from(prefix)) {
    if (!owner.startsWith(prefix)) break
    count += state.openRuns.get(owner) ?? 0
    if (count >= limit) return limit
  }
  return count
}

/** Counts a run that has not ended. */
export function noteOpened(state: MemoryState, run: RunRecord): void {
  add(state, run, 1)
}

/** Counts a run no longer: it has ended, or was removed before it began. */
export function noteClosed(state: MemoryState, run: RunRecord): void {
  add(state, run, -1)
}

function add({ openRuns, openOwners }: MemoryState, { target, lane }: RunRecord, change: number): void {
  const owner = ownerOf({ target, schedule: lane?.id })
  const count = (openRuns.get(owner) ?? 0) + change
  if (count === 0) {
    openRuns.delete(owner)
    openOwners.delete(owner)
    return
  }
  if (!openRuns.has(owner)) openOwners.add(owner)
  openRuns.set(owner, count)
}
