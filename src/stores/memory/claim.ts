import type { Run } from '../../core/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../core/store.js'
import { nextToken } from '../../core/token.js'
import { addLease, handOn, isBusy, makeRoom, serveWaiters, wakeRuns } from './names.js'
import { become, engageKey, keyName, makeWait, ripen, withdraw } from './run-changes.js'
import { skipRun } from './run-endings.js'
import { type RunRecord, toRun } from './run-record.js'
import { claimBefore, type InstanceRecord, type MemoryState, type NameRecord, type TargetQueue } from './state.js'

interface Asked {
  readonly queue: TargetQueue
  left: number
}

export function claimRuns(state: MemoryState, request: ClaimRequest): ClaimResult {
  const now = state.clock.now()
  ripen(state, now)
  const asked = askedQueues(state, request)
  const instance = state.instances.get(request.instance)
  const runs = mayStart(state, instance, now) ? startRuns(state, instance, request, asked, now) : []
  handOn(state, now)
  const nextReadyAt = earliest(asked)
  return { now, runs: runs.map(toRun).filter(isClaimed), ...(nextReadyAt === undefined ? {} : { nextReadyAt }) }
}

function mayStart(state: MemoryState, instance: InstanceRecord | undefined, now: number): instance is InstanceRecord {
  return state.frozen === undefined && instance !== undefined && !instance.dead && instance.expiresAt > now
}

function askedQueues(state: MemoryState, { jobs, sinks }: ClaimRequest): Asked[] {
  const asked: Asked[] = []
  const ask = (target: string, left: number) => {
    const queue = state.queues.get(target)
    if (queue !== undefined) asked.push({ queue, left })
  }
  for (const { name, limit } of jobs) ask(`job:${name}`, limit)
  for (const { name, limit } of sinks) ask(`sink:${name}`, limit)
  return asked
}

function startRuns(
  state: MemoryState,
  instance: InstanceRecord,
  { claim, limit, floor }: ClaimRequest,
  asked: readonly Asked[],
  now: number,
): RunRecord[] {
  // The reply to this claim was lost: return its runs again, as far as this instance still has them.
  if (claim <= instance.claimsSettled || instance.claims.has(claim)) {
    return [...instance.running].filter((run) => run.claim === claim)
  }
  instance.claims.add(claim)
  const started: RunRecord[] = []
  while (started.length < limit) {
    const best = firstOf(asked)
    const run = best?.queue.ready.first
    if (best === undefined || run === undefined) break
    if (!startRun(state, run, instance, floor, now)) continue
    run.claim = claim
    best.left -= 1
    started.push(run)
  }
  return started
}

/** The queue whose first run comes next in claim order. */
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

/** Starts a run, or removes it from the queue because it may not start now. */
function startRun(state: MemoryState, run: RunRecord, instance: InstanceRecord, floor: number, now: number): boolean {
  if (run.attempt === 0 && run.startBy !== undefined && now > run.startBy) {
    skipRun(state, run, 'deadline', now)
    return false
  }
  const name = keyName(state, run)
  if (name !== undefined && !mayTakeKey(state, run, name, now)) return false
  withdraw(state, run)
  become(run, 'running')
  run.attempt += 1
  if (run.rescued) run.takeovers += 1
  run.rescued = false
  run.token = nextToken(Math.max(run.token ?? 0, name?.lastToken ?? 0), now, floor)
  run.startedAt = now
  run.instance = instance.info.id
  run.owner = instance
  instance.running.add(run)
  if (name !== undefined) takeKey(state, run, name, run.token, now)
  return true
}

/** A run may take its key when a permit is free and no older due run waits for it. */
function mayTakeKey(state: MemoryState, run: RunRecord, name: NameRecord, now: number): boolean {
  const limit = run.key?.limit ?? 1
  serveWaiters(state, name, now)
  if (isBusy(name, limit, now)) {
    if (run.attempt === 0 && run.key?.whenBusy === 'skip') skipRun(state, run, 'busy', now)
    else makeWait(state, run, 'key', now)
    return false
  }
  makeRoom(state, name, limit, now)
  if (!hasOlder(run, name)) return true
  makeWait(state, run, 'key', now)
  return false
}

function hasOlder({ order }: RunRecord, { line }: NameRecord): boolean {
  const standing = line?.standing.first
  const waiting = line?.waiting.first
  return (standing !== undefined && standing.order < order) || (waiting !== undefined && waiting.order < order)
}

function takeKey(state: MemoryState, run: RunRecord, name: NameRecord, token: number, now: number): void {
  const { instance, owner } = run
  const holder = `run:${run.id}:${token}`
  run.lease = addLease(state, name, { holder, token, expiresAt: now, instance, run, owner }, now)
  engageKey(state, run)
  // With permits left, a run that waited only behind this one is next.
  if ((run.key?.limit ?? 1) > 1) wakeRuns(state, name, now)
}

function earliest(asked: readonly Asked[]): number | undefined {
  const instants = asked.map(({ queue }) => queue.delayed.first?.readyAt ?? Number.POSITIVE_INFINITY)
  const first = Math.min(...instants)
  return Number.isFinite(first) ? first : undefined
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}
