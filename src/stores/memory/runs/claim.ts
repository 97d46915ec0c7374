/**
 * Starting runs: the highest priority first, then the oldest ready instant, then the oldest run.
 *
 * If the reply is lost, a repeated claim with the same number starts nothing more and returns the same runs. Otherwise the next
 * beat gives them back (`instances/beat.ts`).
 */

import { nextToken } from '../../../core/locks/token.js'
import type { SkipReason } from '../../../core/policies.js'
import type { Run } from '../../../core/runs/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult, SkippedRun } from '../../../core/store.js'
import { addHolder, isBusy, makeRoom } from '../locks/acquire.js'
import { grantWaiters, readyWaitingRuns } from '../locks/pass-on.js'
import {
  claimBefore,
  type InstanceRecord,
  type MemoryState,
  type NameRecord,
  type TargetQueue,
} from '../schema/state.js'
import { type RunRecord, toRun, toSkipped } from './run-codec.js'
import { keyName, makeWait, skipRun, startRun } from './transitions.js'

/** A queue of the request, and how many more of its runs may start. */
interface Asked {
  readonly queue: TargetQueue
  left: number
}

export function claimRuns(state: MemoryState, request: ClaimRequest): ClaimResult {
  const { now } = state
  const asked = askedQueues(state, request)
  const instance = state.instances.get(request.instance)
  const skipped: SkippedRun[] = []
  const runs = mayStart(state, instance) ? startRuns(state, instance, request, asked, skipped) : []
  const nextReadyAt = Math.min(...asked.map(({ queue }) => queue.delayed.first?.readyAt ?? Number.POSITIVE_INFINITY))
  const next = Number.isFinite(nextReadyAt) ? { nextReadyAt } : {}
  return { now, runs: runs.map(toRun).filter(isClaimed), skipped, ...next }
}

function mayStart({ frozen, now }: MemoryState, instance: InstanceRecord | undefined): instance is InstanceRecord {
  return frozen === undefined && instance !== undefined && !instance.dead && instance.expiresAt > now
}

function askedQueues(state: MemoryState, { jobs, sinks }: ClaimRequest): Asked[] {
  const asked = [
    ...jobs.map(({ name, limit }) => ({ queue: state.queues.get(`job:${name}`), left: limit })),
    ...sinks.map(({ name, limit }) => ({ queue: state.queues.get(`sink:${name}`), left: limit })),
  ]
  return asked.flatMap(({ queue, left }) => (queue === undefined ? [] : [{ queue, left }]))
}

function startRuns(
  state: MemoryState,
  instance: InstanceRecord,
  request: ClaimRequest,
  asked: readonly Asked[],
  skipped: SkippedRun[],
): readonly RunRecord[] {
  const { claim, limit } = request
  // A repeated claim number: the first reply was lost, so the answer is the runs of that claim that still run.
  const before = [...instance.running].filter((run) => run.claim === claim)
  if (claim <= instance.claimsSettled || before.length > 0) return before
  const started: RunRecord[] = []
  while (started.length < limit) {
    const best = firstOf(asked)
    const run = best?.queue.ready.first
    if (best === undefined || run === undefined) break
    if (!tryToStart(state, run, instance, request, skipped)) continue
    best.left -= 1
    started.push(run)
  }
  return started
}

/** The queue whose first run is next in the order of claiming. */
function firstOf(asked: readonly Asked[]): Asked | undefined {
  let best: Asked | undefined
  let first: RunRecord | undefined
  for (const candidate of asked) {
    const run = candidate.left > 0 ? candidate.queue.ready.first : undefined
    if (run === undefined || (first !== undefined && !claimBefore(run, first))) continue
    best = candidate
    first = run
  }
  return best
}

/** Starts a run, or takes it out of the queue because it may not start now. */
function tryToStart(
  state: MemoryState,
  run: RunRecord,
  instance: InstanceRecord,
  { claim, floor }: ClaimRequest,
  skipped: SkippedRun[],
) {
  const skip = (reason: SkipReason) => {
    skipRun(state, run, reason)
    skipped.push(toSkipped(run, reason))
  }
  if (run.attempt === 0 && run.startBy !== undefined && state.now > run.startBy) {
    skip(run.byDeadline ? 'deadline' : 'missed')
    return false
  }
  const name = keyName(state, run)
  if (name !== undefined && !mayTakeKey(state, run, name, skip)) return false
  const token = nextToken(Math.max(run.token ?? 0, name?.lastToken ?? 0), state.now, floor)
  startRun(state, run, instance, claim, token)
  if (name !== undefined) takeKey(state, run, name, token)
  return true
}

/** A run may take a key when a permit is free and no older run of the key is due or waits. */
function mayTakeKey(state: MemoryState, run: RunRecord, name: NameRecord, skip: (reason: SkipReason) => void): boolean {
  const limit = run.key?.limit ?? 1
  grantWaiters(state, name)
  if (isBusy(state, name, limit)) {
    if (run.attempt === 0 && run.key?.whenBusy === 'skip') skip('busy')
    else makeWait(state, run, 'key')
    return false
  }
  makeRoom(state, name, limit)
  const older = [name.standing.first, name.waiting.first]
  if (older.every((other) => other === undefined || other.order >= run.order)) return true
  makeWait(state, run, 'key')
  return false
}

function takeKey(state: MemoryState, run: RunRecord, name: NameRecord, token: number): void {
  const { instance, owner } = run
  const holder = `run:${run.id}:${token}`
  run.lease = addHolder(state, name, { holder, token, expiresAt: state.now, instance, run, owner })
  // With permits left, a younger run that waited only for this one to start is next.
  if ((run.key?.limit ?? 1) > 1) readyWaitingRuns(state, name)
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}
