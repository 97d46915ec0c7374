/**
 * The steps from a run's creation to its queues, each with all the indexes that it changes; `run-endings.ts` has the
 * rest. Operations consist of these steps, so that blocked runs and waiters are correct after each. What a step frees
 * is marked as touched, and `handOn` hands it on before the operation ends.
 */
import { failure } from '../../core/errors.js'
import type { RunState, WaitsFor } from '../../core/run.js'
import { mayBecome } from '../../core/transitions.js'
import { openDedupe } from './dedupe.js'
import { type RunFields, type RunRecord, runRecord } from './run-record.js'
import { type KeyLine, keyLine, type MemoryState, type NameRecord, nameOf } from './state.js'

/** Creates a run; it is in no queue until it becomes ready or waits. */
export function addRun(state: MemoryState, fields: RunFields): RunRecord {
  state.lastRun += 1
  const run = runRecord(`r${state.lastRun}`, state.lastRun, fields)
  state.runs.set(run.id, run)
  run.created = state.created.append(run)
  run.lane?.runs.set(laneSlot(run), run)
  openDedupe(state, run)
  return run
}

/** What makes a run of a schedule unique. */
export function laneSlot({ id, origin, tick, backfill }: Pick<RunRecord, 'id' | 'origin' | 'tick' | 'backfill'>) {
  if (origin === 'tick' && tick !== undefined) return tick
  return origin === 'backfill' ? `${tick}/${backfill}` : id
}

/** Puts a run into the claim queue, now or when it is due. A run whose key is not computed yet waits for that first. */
export function makeReady(state: MemoryState, run: RunRecord, now: number): void {
  if (run.unstamped) makeWait(state, run, 'stamp', now)
  else {
    withdraw(state, run)
    become(run, 'ready')
    if (run.readyAt <= now) enterReady(state, run)
    else enterDelayed(state, run)
    state.wakes.add('runs')
  }
}

export function makeWait(state: MemoryState, run: RunRecord, waitsFor: WaitsFor, now: number): void {
  withdraw(state, run)
  become(run, 'waiting')
  run.waitsFor = waitsFor
  run.lane?.engaged.add(run)
  if (run.readyAt <= now) engageKey(state, run)
  else {
    run.claimHeap = state.early
    run.claimHeap.push(run)
  }
  if (waitsFor === 'stamp') state.stampless.add(run)
  else if (waitsFor === 'overlap') run.line = run.lane?.waiting
  else run.line = waitingLine(state, run)
  run.line?.push(run)
}

/** Moves due runs to where they can be claimed and where they block others. */
export function ripen(state: MemoryState, now: number): void {
  for (const { delayed } of state.queues.values()) {
    for (let run = delayed.first; run !== undefined && run.readyAt <= now; run = delayed.first) {
      withdraw(state, run)
      enterReady(state, run)
    }
  }
  for (let run = state.early.first; run !== undefined && run.readyAt <= now; run = state.early.first) {
    state.early.pop()
    run.claimHeap = undefined
    engageKey(state, run)
  }
}

/** Removes a run from every queue. */
export function withdraw(state: MemoryState, run: RunRecord): void {
  run.claimHeap?.remove(run)
  run.claimHeap = undefined
  run.line?.remove(run)
  run.line = undefined
  if (run.key !== undefined) forgetInstant(state, run)
  run.owner?.running.delete(run)
  run.owner = undefined
  if (run.unstamped) state.stampless.delete(run)
  run.waitsFor = undefined
}

/** Changes the state, by a permitted transition only. */
export function become(run: RunRecord, to: RunState): void {
  // A new record is already ready, and a waiting run may begin to wait for something else.
  if (run.state !== to && !mayBecome(run.state, to)) {
    throw failure('TRANSITION_REFUSED', `run ${run.id} is ${run.state} and cannot become ${to}`)
  }
  run.state = to
}

/** From its due time until its end a run counts against its key, also between attempts. */
export function engageKey(state: MemoryState, run: RunRecord): void {
  lineOf(state, run)?.engaged.add(run)
}

export function keyName(state: MemoryState, { key }: RunRecord): NameRecord | undefined {
  return key === undefined ? undefined : nameOf(state, key.name)
}

function lineOf(state: MemoryState, run: RunRecord): KeyLine | undefined {
  const name = keyName(state, run)
  return name === undefined ? undefined : keyLine(name)
}

function enterReady(state: MemoryState, run: RunRecord): void {
  run.claimHeap = run.queue.ready
  run.claimHeap.push(run)
  run.lane?.engaged.add(run)
  if (run.key === undefined) return
  engageKey(state, run)
  run.line = lineOf(state, run)?.standing
  run.line?.push(run)
}

/** Delayed runs do not count for overlap, except ticks: only one is recorded ahead when ticks may not overlap. */
function enterDelayed(state: MemoryState, run: RunRecord): void {
  run.claimHeap = run.queue.delayed
  run.claimHeap.push(run)
  if (run.origin === 'tick' || run.attempt > 0) run.lane?.engaged.add(run)
  if (run.key === undefined || run.attempt > 0) return
  const line = lineOf(state, run)
  if (line === undefined) return
  const together = line.delayed.get(run.readyAt) ?? new Set()
  line.delayed.set(run.readyAt, together.add(run))
}

function waitingLine(state: MemoryState, run: RunRecord): KeyLine['waiting'] | undefined {
  const name = keyName(state, run)
  if (name === undefined) return undefined
  state.blocked.add(name)
  return keyLine(name).waiting
}

function forgetInstant(state: MemoryState, run: RunRecord): void {
  const line = run.key === undefined ? undefined : state.names.get(run.key.name)?.line
  const together = line?.delayed.get(run.readyAt)
  if (together?.delete(run) && together.size === 0) line?.delayed.delete(run.readyAt)
}
