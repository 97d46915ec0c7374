/** Deletes old history and all that has expired. Each kind has a list by age, so the cost depends on what is deleted. */
import type { PruneRequest } from '../../../core/store.js'
import { dropHolder } from '../locks/release.js'
import { pruneRecord } from '../records/records.js'
import { forgetSchedule } from '../schedules/remove.js'
import { type MemoryState, tidyLane } from '../schema/state.js'
import { dropDedupe } from './dedupe.js'
import { forgetRun } from './transitions.js'

/** Deletes one entry of a kind, or returns false when none is due. */
type Step = (state: MemoryState, request: PruneRequest) => boolean

const STEPS: readonly Step[] = [pruneRun, pruneSkip, pruneSchedule, pruneLock, pruneName, pruneDedupe, pruneRecord]

export function pruneHistory(state: MemoryState, request: PruneRequest): number {
  let forgotten = 0
  for (const step of STEPS) while (forgotten < request.limit && step(state, request)) forgotten += 1
  return forgotten
}

function pruneRun(state: MemoryState, { maxAgeMs, maxRuns }: PruneRequest): boolean {
  const run = state.ended.oldest?.item
  if (run === undefined) return false
  if ((run.finishedAt ?? 0) > state.now - maxAgeMs && state.ended.size <= maxRuns) return false
  forgetRun(state, run)
  return true
}

function pruneSkip(state: MemoryState, { maxAgeMs }: PruneRequest): boolean {
  const { oldest } = state.skips
  if (oldest === undefined || oldest.item.recordedAt > state.now - maxAgeMs) return false
  state.skips.remove(oldest)
  oldest.item.lane.skips.delete(oldest.item)
  tidyLane(state, oldest.item.lane)
  return true
}

/** Deletes a finished schedule when its history is old, too, and none of its runs is unfinished. */
function pruneSchedule(state: MemoryState, { maxAgeMs }: PruneRequest): boolean {
  for (let link = state.finished.oldest; link !== undefined; link = link.newer) {
    const { schedule, lane } = link.item
    if ((schedule.finishedAt ?? state.now) > state.now - maxAgeMs) return false
    if (lane.engaged.size > 0) continue
    forgetSchedule(state, link.item)
    return true
  }
  return false
}

/** Prunes a lock whose holder disappeared without a release. */
function pruneLock(state: MemoryState, { leaseAgeMs }: PruneRequest): boolean {
  const lease = state.locks.first
  if (lease === undefined || lease.expiresAt > state.now - leaseAgeMs) return false
  dropHolder(state, lease)
  return true
}

function pruneName(state: MemoryState, { leaseAgeMs }: PruneRequest): boolean {
  const { oldest } = state.unusedNames
  if (oldest === undefined || oldest.item.freedAt > state.now - leaseAgeMs) return false
  const name = oldest.item
  state.unusedNames.remove(oldest)
  name.freed = undefined
  if (name.holders.size === 0 && name.waiters.size === 0 && name.line === undefined) state.names.delete(name.name)
  return true
}

function pruneDedupe(state: MemoryState): boolean {
  const { first } = state.tombstones
  if (first === undefined || first.until > state.now) return false
  dropDedupe(state, first.id)
  return true
}
