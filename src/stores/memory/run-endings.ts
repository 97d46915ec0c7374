/** How a run ends, is cancelled for a newer one, or is taken from its instance. */

import type { ErrorRecord } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import { lostMessage } from '../../core/lost.js'
import type { SkipRange } from '../../core/plan.js'
import type { SkipReason } from '../../core/policies.js'
import { isKept, MAX_TAKEOVERS, type RunState } from '../../core/run.js'
import { toText } from '../../core/stored-text.js'
import { closeDedupe } from './dedupe.js'
import { become, keyName, laneSlot, makeReady, withdraw } from './run-changes.js'
import type { RunRecord } from './run-record.js'
import { type Lane, type MemoryState, tidyLane } from './state.js'

export interface Ending {
  readonly reason?: SkipReason
  readonly error?: ErrorRecord
  readonly result?: Json
}

/** Ends a run: frees its key, marks its waiters as touched, and keeps it in the history or not. */
export function endRun(state: MemoryState, run: RunRecord, to: RunState, now: number, ending: Ending = {}): void {
  withdraw(state, run)
  become(run, to)
  freeKey(state, run)
  disengage(state, run)
  closeDedupe(state, run, now)
  state.wakes.add('settled')
  if (isKept(run.keep, to)) keepRun(state, run, ending, now)
  else {
    if (ending.reason !== undefined) recordSkip(state, run, ending.reason, now)
    forgetRun(state, run)
  }
}

export function skipRun(state: MemoryState, run: RunRecord, reason: SkipReason, now: number): void {
  endRun(state, run, 'skipped', now, { reason })
}

/** Removes a run that has not started, as if it had never been recorded. */
export function unrecordRun(state: MemoryState, run: RunRecord): void {
  withdraw(state, run)
  disengage(state, run)
  forgetRun(state, run)
}

export function forgetRun(state: MemoryState, run: RunRecord): void {
  state.runs.delete(run.id)
  if (run.created !== undefined) state.created.remove(run.created)
  if (run.ended !== undefined) state.ended.remove(run.ended)
  if (run.lane === undefined) return
  run.lane.runs.delete(laneSlot(run))
  tidyLane(state, run.lane)
}

/** Takes a run from its instance: its token is stale from now on, and another instance may claim the run. */
export function takeOver(state: MemoryState, run: RunRecord, now: number, died: boolean): 'ready' | 'ended' | 'lost' {
  if (run.cancelRequested) {
    endRun(state, run, 'cancelled', now)
    return 'ended'
  }
  if (died && run.takeovers >= MAX_TAKEOVERS) {
    const message = lostMessage(run.takeovers + 1, run.instance)
    endRun(state, run, 'failed', now, { error: { code: 'LOST', message } })
    return 'lost'
  }
  giveBack(state, run, now, now)
  run.rescued = died
  return 'ready'
}

/** Makes a running run ready again, at once or later. */
export function giveBack(state: MemoryState, run: RunRecord, readyAt: number, now: number): void {
  freeKey(state, run)
  run.readyAt = readyAt
  makeReady(state, run, now)
}

/**
 * For `cancel-running`: asks running runs to cancel, cancels runs between attempts, and skips runs that never started.
 */
export function makeWay(state: MemoryState, lane: Lane, now: number): void {
  for (const run of [...lane.engaged]) {
    if (run.state === 'running') requestCancel(state, run)
    else if (run.attempt > 0) endRun(state, run, 'cancelled', now)
    else skipRun(state, run, 'overlap', now)
  }
}

export function requestCancel(state: MemoryState, run: RunRecord): void {
  run.cancelRequested = true
  state.wakes.add('attempts')
}

export function addSkip(state: MemoryState, lane: Lane, range: SkipRange, now: number): void {
  const skip = { range: Object.freeze({ ...range }), lane, recordedAt: now }
  lane.skips.add(skip)
  state.skips.append(skip)
}

function keepRun(state: MemoryState, run: RunRecord, { reason, error, result }: Ending, now: number): void {
  run.finishedAt = now
  run.reason = reason
  run.error = error
  run.result = result === undefined ? undefined : toText(result)
  run.ended = state.ended.append(run)
}

/** A skipped tick whose run is not kept in the history is recorded among the skips. */
function recordSkip(state: MemoryState, run: RunRecord, reason: SkipReason, now: number): void {
  const { lane, tick, origin } = run
  if (lane === undefined || tick === undefined || origin !== 'tick') return
  addSkip(state, lane, { from: tick, to: tick, count: 1, reason }, now)
}

function freeKey(state: MemoryState, run: RunRecord): void {
  const { lease } = run
  if (lease === undefined) return
  run.lease = undefined
  lease.name.holders.delete(lease.holder)
  state.touchedNames.add(lease.name)
}

function disengage(state: MemoryState, run: RunRecord): void {
  if (run.lane !== undefined) {
    run.lane.engaged.delete(run)
    if (run.lane.waiting.size > 0) state.touchedLanes.add(run.lane)
  }
  const name = keyName(state, run)
  if (name === undefined) return
  name.line?.engaged.delete(run)
  state.touchedNames.add(name)
}
