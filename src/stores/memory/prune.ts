import type { PruneRequest } from '../../core/store.js'
import { dropDedupe } from './dedupe.js'
import { dropLease, handOn } from './names.js'
import { pruneRecord } from './records.js'
import { forgetRun } from './run-endings.js'
import { forgetSchedule } from './schedule-changes.js'
import { type MemoryState, tidyLane } from './state.js'

/** Prunes one item that is old enough, or returns false. */
type Step = (state: MemoryState, request: PruneRequest, now: number) => boolean

/** The cost is proportional to what is pruned: every kind has its oldest item at hand. */
export function pruneHistory(state: MemoryState, request: PruneRequest): number {
  const now = state.clock.now()
  let forgotten = 0
  for (const step of STEPS) while (forgotten < request.limit && step(state, request, now)) forgotten += 1
  handOn(state, now)
  return forgotten
}

const STEPS: readonly Step[] = [pruneRun, pruneSkip, pruneSchedule, pruneLock, pruneName, pruneDedupe, pruneExpired]

function pruneRun(state: MemoryState, { maxAgeMs, maxRuns }: PruneRequest, now: number): boolean {
  const run = state.ended.oldest?.item
  if (run === undefined) return false
  if ((run.finishedAt ?? 0) > now - maxAgeMs && state.ended.size <= maxRuns) return false
  forgetRun(state, run)
  return true
}

function pruneSkip(state: MemoryState, { maxAgeMs }: PruneRequest, now: number): boolean {
  const { oldest } = state.skips
  if (oldest === undefined || oldest.item.recordedAt > now - maxAgeMs) return false
  state.skips.remove(oldest)
  oldest.item.lane.skips.delete(oldest.item)
  tidyLane(state, oldest.item.lane)
  return true
}

/** Prunes a finished schedule with its history, once it has no unfinished run. */
function pruneSchedule(state: MemoryState, { maxAgeMs }: PruneRequest, now: number): boolean {
  for (let link = state.finished.oldest; link !== undefined; link = link.newer) {
    const { schedule, lane } = link.item
    if ((schedule.finishedAt ?? now) > now - maxAgeMs) return false
    if (lane.engaged.size > 0) continue
    forgetSchedule(state, link.item)
    return true
  }
  return false
}

/** Prunes a lock whose holder disappeared without a release. */
function pruneLock(state: MemoryState, { leaseAgeMs }: PruneRequest, now: number): boolean {
  const lease = state.locks.first
  if (lease === undefined || lease.expiresAt > now - leaseAgeMs) return false
  dropLease(state, lease)
  return true
}

function pruneName(state: MemoryState, { leaseAgeMs }: PruneRequest, now: number): boolean {
  const { oldest } = state.freedNames
  if (oldest === undefined || oldest.item.freedAt > now - leaseAgeMs) return false
  const name = oldest.item
  state.freedNames.remove(oldest)
  name.freed = undefined
  if (name.holders.size === 0 && name.waiters.size === 0 && name.line === undefined) state.names.delete(name.name)
  return true
}

function pruneDedupe(state: MemoryState, _request: PruneRequest, now: number): boolean {
  const { first } = state.tombstones
  if (first === undefined || first.until > now) return false
  dropDedupe(state, first.id)
  return true
}

function pruneExpired(state: MemoryState, _request: PruneRequest, now: number): boolean {
  return pruneRecord(state, now)
}
