/** Deletes old history and all that has expired. Each kind has an index by age, so the cost depends on what is deleted. */
import type { PruneRequest } from '../../../core/store.js'
import { dropHolder } from '../locks/release.js'
import { pruneRecords } from '../records/records.js'
import { forgetSchedule } from '../schedules/remove.js'
import { type MemoryState, tidyLane } from '../schema/state.js'
import { dropDedupe } from './dedupe.js'
import { forgetRun } from './transitions.js'

/** Deletes what is due of one kind, and yields after each entry. */
type Pruner = (state: MemoryState, request: PruneRequest) => Generator<undefined, void>

const PRUNERS: readonly Pruner[] = [
  pruneRuns,
  pruneSkips,
  pruneSchedules,
  pruneLocks,
  pruneTokens,
  pruneDedupes,
  pruneRecords,
]

export function pruneHistory(state: MemoryState, request: PruneRequest): number {
  let forgotten = 0
  for (const pruner of PRUNERS) {
    for (const _ of pruner(state, request)) {
      forgotten += 1
      if (forgotten >= request.limit) return forgotten
    }
  }
  return forgotten
}

function* pruneRuns(state: MemoryState, { maxAgeMs, maxRuns }: PruneRequest) {
  for (const run of state.ended) {
    if ((run.finishedAt ?? 0) > state.now - maxAgeMs && state.ended.size <= maxRuns) return
    forgetRun(state, run)
    yield
  }
}

function* pruneSkips(state: MemoryState, { maxAgeMs }: PruneRequest) {
  for (const skip of state.skips) {
    if (skip.recordedAt > state.now - maxAgeMs) return
    state.skips.delete(skip)
    skip.lane.skips.delete(skip)
    tidyLane(state, skip.lane)
    yield
  }
}

/** Deletes a finished schedule when its history is old, too, and none of its runs is unfinished. */
function* pruneSchedules(state: MemoryState, { maxAgeMs }: PruneRequest) {
  for (const record of state.finished) {
    if ((record.schedule.finishedAt ?? state.now) > state.now - maxAgeMs) return
    if (record.lane.engaged.size > 0) continue
    forgetSchedule(state, record)
    yield
  }
}

/** Prunes locks whose holders disappeared without a release. */
function* pruneLocks(state: MemoryState, { leaseAgeMs }: PruneRequest) {
  for (let lease = state.locks.first; lease !== undefined; lease = state.locks.first) {
    if (lease.expiresAt > state.now - leaseAgeMs) return
    dropHolder(state, lease)
    yield
  }
}

function* pruneTokens(state: MemoryState, { leaseAgeMs }: PruneRequest) {
  for (const [name, { freedAt }] of state.lastTokens) {
    if (freedAt > state.now - leaseAgeMs) return
    state.lastTokens.delete(name)
    yield
  }
}

function* pruneDedupes(state: MemoryState) {
  for (let first = state.tombstones.first; first !== undefined; first = state.tombstones.first) {
    if (first.until > state.now) return
    dropDedupe(state, first.id)
    yield
  }
}
