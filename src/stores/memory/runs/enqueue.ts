import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import { targetName, toText } from '../../../core/runs/stored-text.js'
import type { EnqueueResult } from '../../../core/store.js'
import { type Lane, laneOf, type MemoryState, type NameRecord, queueOf } from '../schema/state.js'
import { dedupeOf } from './dedupe.js'
import { frozenCopy, type RunRecord } from './run-codec.js'
import { addRun, laneSlot, makeReady, makeWait, makeWay } from './transitions.js'

export function enqueueRuns(state: MemoryState, runs: readonly NewRun[], tx?: unknown): EnqueueResult[] {
  if (tx !== undefined) {
    throw failure('UNSUPPORTED', 'the memory store has no transactions: enqueue without `tx`, or use a database')
  }
  return runs.map((run) => enqueueRun(state, run))
}

function enqueueRun(state: MemoryState, run: NewRun): EnqueueResult {
  const { now } = state
  const readyAt = run.readyAt ?? now + (run.delayMs ?? 0)
  const refused = refusal(state, run, readyAt)
  if (refused !== undefined) return refused
  const waits = run.schedule !== undefined && mustWait(state, run.schedule, run)
  // The lane is looked up only now, because `makeWay` removes a lane that it has emptied.
  const lane = run.schedule === undefined ? undefined : laneOf(state, run.schedule)
  const { origin, priority, keep, backfill, dedupe, dedupeForMs = 0 } = run
  const target = frozenCopy(run.target)
  const record = addRun(state, {
    ...{ target, origin, lane, backfill, priority, keep, dedupe, dedupeForMs, readyAt },
    tick: run.tick ?? (origin === 'trigger' ? now : undefined),
    payload: toText(run.payload),
    key: frozenCopy(run.key),
    createdAt: now,
    queue: queueOf(state, targetName(target)),
  })
  if (waits) makeWait(state, record, 'overlap')
  else makeReady(state, record)
  return { outcome: 'enqueued', run: record.id }
}

function refusal(state: MemoryState, run: NewRun, readyAt: number): EnqueueResult | undefined {
  const { target, dedupe, schedule, origin } = run
  const same = dedupe === undefined ? undefined : dedupeOf(state, target, dedupe)
  if (same !== undefined) return { outcome: 'duplicate', run: same.run }
  const lane = schedule === undefined ? undefined : state.lanes.get(schedule)
  if (origin === 'backfill' && lane !== undefined) {
    const known = lane.runs.get(laneSlot({ id: '', origin, tick: run.tick, backfill: run.backfill }))
    if (known !== undefined) return { outcome: 'duplicate', run: known.id }
  }
  const winner = holderOfKey(state, run, readyAt) ?? (lane === undefined ? undefined : overlapping(lane, run))
  return winner === undefined ? undefined : { outcome: 'busy', run: winner.id }
}

/** The run that keeps the key busy, when as many as its limit are due or running, or one is ready at the same instant. */
function holderOfKey(state: MemoryState, { key, checkKey }: NewRun, readyAt: number): RunRecord | undefined {
  if (!checkKey || key === undefined || key === 'unstamped') return undefined
  const name = state.names.get(key.name)
  if (name === undefined) return undefined
  if (readyAt > state.now) return name.delayed.get(readyAt)?.values().next().value
  return name.engaged.size < key.limit ? undefined : firstEngaged(name)
}

/**
 * The run that a busy key is reported with: a running one, else the oldest that is due, else one between attempts, else the
 * oldest that waits for other runs of its schedule.
 */
function firstEngaged({ engaged, standing, waiting }: NameRecord): RunRecord | undefined {
  for (const run of engaged) if (run.state === 'running') return run
  const [oldest] = [standing.first, waiting.first].filter((run) => run !== undefined).sort((a, b) => a.order - b.order)
  if (oldest !== undefined) return oldest
  const hasBegun = ({ attempt }: RunRecord) => Number(attempt > 0)
  return [...engaged].sort((a, b) => hasBegun(b) - hasBegun(a) || a.order - b.order)[0]
}

function overlapping({ engaged, waiting }: Lane, { overlap }: NewRun): RunRecord | undefined {
  const [first] = engaged
  if (overlap === 'skip') return first
  return overlap === 'queue-one' ? waiting.first : undefined
}

/** Whether a run has to wait for others of its schedule. */
function mustWait(state: MemoryState, schedule: string, { overlap }: NewRun): boolean {
  if (overlap === undefined || overlap === 'allow') return false
  const lane = laneOf(state, schedule)
  if (overlap === 'cancel-running') makeWay(state, lane)
  return lane.engaged.size > 0
}
