import { failure } from '../../core/errors.js'
import type { NewRun } from '../../core/run.js'
import type { EnqueueResult } from '../../core/store.js'
import { targetName, toText } from '../../core/stored-text.js'
import { dedupeOf } from './dedupe.js'
import { handOn } from './names.js'
import { addRun, laneSlot, makeReady, makeWait, ripen } from './run-changes.js'
import { makeWay } from './run-endings.js'
import { frozenCopy, type RunRecord } from './run-record.js'
import { type KeyLine, type Lane, laneOf, type MemoryState, queueOf } from './state.js'

export function enqueueRuns(state: MemoryState, runs: readonly NewRun[], tx: unknown): EnqueueResult[] {
  if (tx !== undefined) {
    throw failure('UNSUPPORTED', 'the memory store has no transactions: enqueue without `tx`, or use a database')
  }
  const now = state.clock.now()
  ripen(state, now)
  const results = runs.map((run) => enqueueRun(state, run, now))
  handOn(state, now)
  return results
}

function enqueueRun(state: MemoryState, run: NewRun, now: number): EnqueueResult {
  const readyAt = run.readyAt ?? now + (run.delayMs ?? 0)
  const refused = refusal(state, run, readyAt, now)
  if (refused !== undefined) return refused
  const waits = run.schedule !== undefined && meetOverlap(state, run.schedule, run, now)
  // Looked up after `cancel-running` took effect, which may have removed an empty lane.
  const lane = run.schedule === undefined ? undefined : laneOf(state, run.schedule)
  const { origin, priority, keep, backfill, dedupe, dedupeForMs = 0 } = run
  const target = frozenCopy(run.target)
  const record = addRun(state, {
    ...{ target, origin, lane, backfill, priority, keep, dedupe, dedupeForMs, readyAt },
    tick: run.tick ?? (origin === 'trigger' ? now : undefined),
    payload: toText(run.payload),
    key: frozenCopy(run.key),
    createdAt: now,
    startBy: undefined,
    queue: queueOf(state, targetName(target)),
  })
  if (waits) makeWait(state, record, 'overlap', now)
  else makeReady(state, record, now)
  return { outcome: 'enqueued', run: record.id }
}

function refusal(state: MemoryState, run: NewRun, readyAt: number, now: number): EnqueueResult | undefined {
  const { target, dedupe, schedule, origin } = run
  const same = dedupe === undefined ? undefined : dedupeOf(state, target, dedupe, now)
  if (same !== undefined) return { outcome: 'duplicate', run: same.run }
  const lane = schedule === undefined ? undefined : state.lanes.get(schedule)
  if (origin === 'backfill' && lane !== undefined) {
    const known = lane.runs.get(laneSlot({ id: '', origin, tick: run.tick, backfill: run.backfill }))
    if (known !== undefined) return { outcome: 'duplicate', run: known.id }
  }
  const winner = keyWinner(state, run, readyAt, now) ?? (lane === undefined ? undefined : overlapWinner(lane, run))
  return winner === undefined ? undefined : { outcome: 'busy', run: winner.id }
}

/**
 * The run that holds the key, when as many runs as its limit are due or executing, or one is ready at the same instant.
 */
function keyWinner(state: MemoryState, run: NewRun, readyAt: number, now: number): RunRecord | undefined {
  const { key, checkKey } = run
  if (!checkKey || key === undefined || key === 'unstamped') return undefined
  const line = state.names.get(key.name)?.line
  if (line === undefined) return undefined
  if (readyAt > now) return line.delayed.get(readyAt)?.values().next().value
  return line.engaged.size < key.limit ? undefined : firstEngaged(line)
}

/**
 * The executing run, else the oldest due one, else one between attempts, else the oldest that waits for earlier runs of
 * its schedule.
 */
function firstEngaged({ engaged, standing, waiting }: KeyLine): RunRecord | undefined {
  for (const run of engaged) if (run.state === 'running') return run
  const [oldest] = [standing.first, waiting.first].filter((run) => run !== undefined).sort((a, b) => a.order - b.order)
  if (oldest !== undefined) return oldest
  const hasBegun = ({ attempt }: RunRecord) => Number(attempt > 0)
  return [...engaged].sort((a, b) => hasBegun(b) - hasBegun(a) || a.order - b.order)[0]
}

function overlapWinner({ engaged, waiting }: Lane, { overlap }: NewRun): RunRecord | undefined {
  const [first] = engaged
  if (overlap === 'skip') return first
  return overlap === 'queue-one' ? waiting.first : undefined
}

/** Applies the overlap policy; returns whether the run has to wait for earlier runs of its schedule. */
function meetOverlap(state: MemoryState, schedule: string, { overlap }: NewRun, now: number): boolean {
  if (overlap === undefined || overlap === 'allow') return false
  const lane = laneOf(state, schedule)
  if (overlap === 'cancel-running') makeWay(state, lane, now)
  return lane.engaged.size > 0
}

export function isAvailable(state: MemoryState, key: string, limit: number): boolean {
  ripen(state, state.clock.now())
  return (state.names.get(key)?.line?.engaged.size ?? 0) < limit
}
