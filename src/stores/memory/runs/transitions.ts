/**
 * All changes of a run's state. Only this file makes them, and each also updates the indexes:
 *
 *     waiting ⇄ ready → running → succeeded | failed | cancelled
 *     waiting | ready → skipped | cancelled
 *     running → ready | waiting              retry, takeover, release at stop
 *     ready → failed                         too many takeovers after crashes
 *     failed | cancelled | skipped → ready   retried by hand
 *
 * A transition records the lock name or the schedule that it frees. `locks/pass-on.ts` then serves the waiters of that lock or
 * schedule, before the operation ends.
 */

import type { Json } from '../../../core/checks/json.js'
import type { ErrorRecord } from '../../../core/errors.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import { lostMessage } from '../../../core/runs/lost-message.js'
import { isKept, MAX_TAKEOVERS, type RunState, type WaitsFor } from '../../../core/runs/run.js'
import { newMark, runId } from '../../../core/runs/run-id.js'
import { toText } from '../../../core/runs/stored-text.js'
import { become } from '../../../core/runs/transitions.js'
import { dropHolder } from '../locks/release.js'
import { addSkip } from '../schedules/skips.js'
import { type InstanceRecord, type Lane, type MemoryState, type NameRecord, nameOf, tidyLane } from '../schema/state.js'
import { noteClosed, noteOpened } from './count.js'
import { closeDedupe, openDedupe } from './dedupe.js'
import { frozenCopy, type RunFields, type RunRecord, runRecord } from './run-codec.js'

/** Adds a run. It is in no queue until it becomes ready or waits. */
export function addRun(state: MemoryState, fields: RunFields): RunRecord {
  state.lastRun += 1
  const run = runRecord(runId(state.lastRun, newMark()), state.lastRun, fields)
  state.runs.set(run.id, run)
  state.runLog.add(run)
  run.lane?.runs.set(laneSlot(run), run)
  openDedupe(state, run)
  noteOpened(state, run)
  return run
}

/** What makes a run of a schedule unique: a tick by its instant, a backfill by instant and name. */
export function laneSlot({ id, origin, tick, backfill }: Pick<RunRecord, 'id' | 'origin' | 'tick' | 'backfill'>) {
  if (origin === 'tick' && tick !== undefined) return tick
  return origin === 'backfill' ? `${tick}/${backfill}` : id
}

/** Makes a run ready to be claimed, from `readyAt` on. A run whose key is not known yet waits for its stamp instead. */
export function makeReady(state: MemoryState, run: RunRecord): void {
  if (run.unstamped) {
    makeWait(state, run, 'stamp')
    return
  }
  withdraw(state, run)
  enter(state, run, 'ready')
  if (run.readyAt <= state.now) enterReady(state, run)
  else enterDelayed(state, run)
  state.wakes.add('runs')
}

export function makeWait(state: MemoryState, run: RunRecord, waitsFor: WaitsFor): void {
  withdraw(state, run)
  enter(state, run, 'waiting')
  run.waitsFor = waitsFor
  run.lane?.engaged.add(run)
  if (run.readyAt <= state.now) engageKey(state, run)
  else state.early.push(run)
  if (waitsFor === 'stamp') state.stampless.add(run)
  else if (waitsFor === 'overlap') run.lane?.waiting.push(run)
  else waitForKey(state, run)
}

/** Starts a run whose key, if it has one, may be taken. */
export function startRun(state: MemoryState, run: RunRecord, instance: InstanceRecord, claim: number, token: number) {
  withdraw(state, run)
  enter(state, run, 'running')
  run.attempt += 1
  if (run.orphaned) run.takeovers += 1
  run.orphaned = false
  run.token = token
  run.startedAt = state.now
  run.instance = instance.info.id
  run.owner = instance
  run.claim = claim
  instance.running.add(run)
  engageKey(state, run)
}

/** Moves runs that have become due to where they can be claimed, and where they count against their key and schedule. */
export function ripen(state: MemoryState): void {
  const { now, early } = state
  for (const { delayed } of state.queues.values()) {
    for (let run = delayed.first; run !== undefined && run.readyAt <= now; run = delayed.first) {
      withdraw(state, run)
      enterReady(state, run)
    }
  }
  for (let run = early.first; run !== undefined && run.readyAt <= now; run = early.first) {
    early.remove(run)
    engageKey(state, run)
  }
}

export interface Ending {
  readonly reason?: SkipReason
  readonly error?: ErrorRecord
  readonly result?: Json
}

/** Ends a run and releases its key. `keep` says whether the run stays in the history. */
export function endRun(state: MemoryState, run: RunRecord, to: RunState, ending: Ending = {}): void {
  withdraw(state, run)
  enter(state, run, to)
  if (run.lease !== undefined) dropHolder(state, run.lease)
  disengage(state, run)
  closeDedupe(state, run)
  noteClosed(state, run)
  state.wakes.add('settled')
  if (!isKept(run.keep, to)) {
    recordSkip(state, run, ending)
    forgetRun(state, run)
    return
  }
  run.finishedAt = state.now
  run.reason = ending.reason
  run.error = frozenCopy(ending.error)
  run.result = ending.result === undefined ? undefined : toText(ending.result)
  state.ended.add(run)
}

export function skipRun(state: MemoryState, run: RunRecord, reason: SkipReason): void {
  endRun(state, run, 'skipped', { reason })
}

/** A skipped tick that the history does not keep is recorded among the skips. */
function recordSkip(state: MemoryState, { lane, tick, origin }: RunRecord, { reason }: Ending): void {
  if (reason === undefined || lane === undefined || tick === undefined || origin !== 'tick') return
  addSkip(state, lane, { from: tick, to: tick, count: 1, reason })
}

/** Removes a run that has not begun, as if it had never been recorded. */
export function unrecordRun(state: MemoryState, run: RunRecord): void {
  withdraw(state, run)
  disengage(state, run)
  noteClosed(state, run)
  forgetRun(state, run)
}

export function forgetRun(state: MemoryState, run: RunRecord): void {
  state.runs.delete(run.id)
  state.runLog.delete(run)
  state.ended.delete(run)
  if (run.lane === undefined) return
  run.lane.runs.delete(laneSlot(run))
  tidyLane(state, run.lane)
}

/** Takes a run from its instance: its token can no longer settle it, and another instance may claim it. */
export function takeOver(state: MemoryState, run: RunRecord, died: boolean): 'ready' | 'ended' | 'lost' {
  if (run.cancelRequested) {
    endRun(state, run, 'cancelled')
    return 'ended'
  }
  if (died && run.takeovers >= MAX_TAKEOVERS) {
    const message = lostMessage(run.takeovers + 1, run.instance)
    endRun(state, run, 'failed', { error: { code: 'LOST', message } })
    return 'lost'
  }
  giveBack(state, run, state.now)
  run.orphaned = died
  return 'ready'
}

/** A running run becomes ready again, at once or later. */
export function giveBack(state: MemoryState, run: RunRecord, readyAt: number): void {
  if (run.lease !== undefined) dropHolder(state, run.lease)
  run.readyAt = readyAt
  makeReady(state, run)
}

/** Makes a run that has ended ready again. Its failures and takeovers are counted from zero. */
export function reopenRun(state: MemoryState, run: RunRecord): void {
  state.ended.delete(run)
  Object.assign(run, {
    ...{ finishedAt: undefined, reason: undefined, error: undefined, result: undefined },
    ...{ cancelRequested: false, orphaned: false, failures: 0, takeovers: 0, startBy: undefined, readyAt: state.now },
  } satisfies Partial<RunRecord>)
  openDedupe(state, run)
  noteOpened(state, run)
  makeReady(state, run)
}

/** Sets a run's key, or none. A run that waited only for this becomes ready. */
export function stampRun(state: MemoryState, run: RunRecord, key: RunKey | undefined): void {
  state.stampless.delete(run)
  run.unstamped = false
  run.key = frozenCopy(key)
  if (run.waitsFor === 'stamp') makeReady(state, run)
}

/** Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped. */
export function makeWay(state: MemoryState, lane: Lane): void {
  for (const run of [...lane.engaged]) {
    if (run.state === 'running') requestCancel(state, run)
    else if (run.attempt > 0) endRun(state, run, 'cancelled')
    else skipRun(state, run, 'overlap')
  }
}

export function requestCancel(state: MemoryState, run: RunRecord): void {
  run.cancelRequested = true
  state.wakes.add('attempts')
}

function enter(state: MemoryState, run: RunRecord, to: RunState): void {
  const from = run.state
  become(run, to)
  state.runLog.moved(run, from)
}

/** Takes a run out of every queue that it is in. */
export function withdraw(state: MemoryState, run: RunRecord): void {
  const name = run.key === undefined ? undefined : state.names.get(run.key.name)
  const queues = [run.queue.ready, run.queue.delayed, state.early, run.lane?.waiting, name?.standing, name?.waiting]
  for (const queue of queues) queue?.remove(run)
  const together = name?.delayed.get(run.readyAt)
  if (together?.delete(run) && together.size === 0) name?.delayed.delete(run.readyAt)
  run.owner?.running.delete(run)
  run.owner = undefined
  state.stampless.delete(run)
  run.waitsFor = undefined
}

function enterReady(state: MemoryState, run: RunRecord): void {
  run.queue.ready.push(run)
  run.lane?.engaged.add(run)
  engageKey(state, run)?.standing.push(run)
}

/** Of the runs that are not due, only ticks and retries count as unfinished: a second tick must not be recorded ahead. */
function enterDelayed(state: MemoryState, run: RunRecord): void {
  run.queue.delayed.push(run)
  if (run.origin === 'tick' || run.attempt > 0) run.lane?.engaged.add(run)
  const name = run.attempt > 0 ? undefined : keyName(state, run)
  const together = name?.delayed.get(run.readyAt) ?? new Set()
  name?.delayed.set(run.readyAt, together.add(run))
}

/** A run counts against its key from when it is due until it ends, also between attempts. */
function engageKey(state: MemoryState, run: RunRecord): NameRecord | undefined {
  const name = keyName(state, run)
  name?.engaged.add(run)
  return name
}

export function keyName(state: MemoryState, { key }: RunRecord): NameRecord | undefined {
  return key === undefined ? undefined : nameOf(state, key.name)
}

function waitForKey(state: MemoryState, run: RunRecord): void {
  const name = keyName(state, run)
  if (name === undefined) return
  name.waiting.push(run)
  state.blocked.add(name)
}

/** The run holds up neither its schedule nor its key any more: their waiters may be next. */
function disengage(state: MemoryState, run: RunRecord): void {
  if (run.lane !== undefined) {
    run.lane.engaged.delete(run)
    state.freedLanes.add(run.lane)
  }
  const name = keyName(state, run)
  if (name === undefined) return
  name.engaged.delete(run)
  state.freedNames.add(name)
}
