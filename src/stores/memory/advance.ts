import { applyPlan } from '../../core/declare.js'
import type { Plan, PlannedTick, Unfinished } from '../../core/plan.js'
import { plannable } from '../../core/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import { targetName } from '../../core/stored-text.js'
import { handOn } from './names.js'
import { addRun, makeReady, makeWait, ripen } from './run-changes.js'
import { addSkip, makeWay, skipRun } from './run-endings.js'
import { moveSchedule, unclaimedRuns } from './schedule-changes.js'
import { type Lane, type MemoryState, queueOf, type ScheduleRecord } from './state.js'

export function advanceSchedules(state: MemoryState, request: AdvanceRequest): AdvanceResult {
  const now = state.clock.now()
  ripen(state, now)
  const batch = takeDue(state, request.limit, now + request.lookaheadMs)
  let [recorded, skipped] = [0, 0]
  for (const [record, plan] of planAll(state, batch, request, now)) {
    recorded += applyTicks(state, record, plan, now)
    for (const range of plan.skips) {
      addSkip(state, record.lane, range, now)
      skipped += range.count
    }
    moveSchedule(state, record, applyPlan(record.schedule, plan, now))
  }
  handOn(state, now)
  const nextDueAt = state.due.first?.dueAt
  return { now, schedules: batch.length, recorded, skipped, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

/**
 * Removes all due schedules from the queue first, so that a schedule that is due again after its step is not taken
 * twice.
 */
function takeDue(state: MemoryState, limit: number, horizon: number): ScheduleRecord[] {
  const batch: ScheduleRecord[] = []
  while (batch.length < limit) {
    const first = state.due.first
    if (first === undefined || first.dueAt > horizon) break
    state.due.remove(first)
    batch.push(first)
  }
  return batch
}

/** Plans everything before the first write, so that a planner that throws leaves the store unchanged. */
function planAll(
  state: MemoryState,
  batch: readonly ScheduleRecord[],
  { plan, lookaheadMs }: AdvanceRequest,
  now: number,
): [ScheduleRecord, Plan][] {
  try {
    return batch.map((record) => [
      record,
      plan(plannable(record.schedule), unfinishedRuns(record), now, now + lookaheadMs),
    ])
  } catch (error) {
    for (const record of batch) state.due.push(record)
    throw error
  }
}

/** Unfinished runs matter only to an overlap policy other than `allow`. */
function unfinishedRuns({ schedule, lane }: ScheduleRecord): Unfinished[] {
  if (schedule.definition.overlap === 'allow' || lane.engaged.size === 0) return []
  return [...lane.engaged].map(({ state, attempt, origin, tick }) => ({
    state: state === 'running' || state === 'waiting' ? state : 'ready',
    started: attempt > 0,
    ...(origin === 'tick' && tick !== undefined ? { tick } : {}),
  }))
}

function applyTicks(state: MemoryState, record: ScheduleRecord, plan: Plan, now: number): number {
  const { lane } = record
  if (plan.retractThrough !== undefined) retract(state, lane, plan.retractThrough, now)
  if (plan.cancelUnfinished) makeWay(state, lane, now)
  let recorded = 0
  for (const tick of plan.ticks) {
    // A tick is unique: by its instant while its run is known, and by the cursor afterwards.
    if (lane.runs.has(tick.at) || tick.at <= record.schedule.cursor) continue
    recordTick(state, record, tick, now)
    recorded += 1
  }
  return recorded
}

function retract(state: MemoryState, lane: Lane, through: number, now: number): void {
  for (const run of unclaimedRuns(lane)) {
    if (run.tick !== undefined && run.tick <= through) skipRun(state, run, 'missed', now)
  }
}

function recordTick(state: MemoryState, { schedule, payload, lane }: ScheduleRecord, tick: PlannedTick, now: number) {
  const { target, priority, keep, key } = schedule.definition
  const run = addRun(state, {
    target,
    origin: 'tick',
    lane,
    tick: tick.at,
    backfill: undefined,
    payload,
    priority,
    keep,
    key,
    dedupe: undefined,
    dedupeForMs: 0,
    createdAt: now,
    readyAt: tick.readyAt,
    startBy: tick.startBy,
    queue: queueOf(state, targetName(target)),
  })
  if (tick.waits) {
    makeWait(state, run, 'overlap', now)
    state.touchedLanes.add(lane)
  } else makeReady(state, run, now)
}
