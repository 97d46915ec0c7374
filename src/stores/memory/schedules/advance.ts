import { targetName } from '../../../core/runs/stored-text.js'
import { applyPlan } from '../../../core/schedules/declare.js'
import type { Plan, PlannedTick, Unfinished } from '../../../core/schedules/plan.js'
import { plannable } from '../../../core/schedules/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import { addRun, makeReady, makeWait, makeWay, skipRun } from '../runs/transitions.js'
import { type MemoryState, queueOf, type ScheduleRecord } from '../schema/state.js'
import { moveSchedule } from './put.js'
import { addSkip } from './skips.js'
import { unclaimedRuns } from './take-back.js'

export function advanceSchedules(state: MemoryState, request: AdvanceRequest): AdvanceResult {
  const { now } = state
  const batch = takeDue(state, request.limit, now + request.lookaheadMs)
  let [recorded, skipped] = [0, 0]
  for (const [record, plan] of planAll(state, batch, request)) {
    recorded += applyTicks(state, record, plan)
    for (const range of plan.skips) {
      addSkip(state, record.lane, range)
      skipped += range.count
    }
    moveSchedule(state, record, applyPlan(record.schedule, plan, now))
  }
  const nextDueAt = state.due.first?.schedule.dueAt
  return { now, schedules: batch.length, recorded, skipped, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

/** Takes all due schedules out of the queue first: one that is due again after its step must not be taken twice. */
function takeDue(state: MemoryState, limit: number, horizon: number): ScheduleRecord[] {
  const batch: ScheduleRecord[] = []
  for (let first = state.due.first; batch.length < limit; first = state.due.first) {
    if (first === undefined || (first.schedule.dueAt ?? 0) > horizon) break
    state.due.remove(first)
    batch.push(first)
  }
  return batch
}

/** Plans all schedules before anything is written: a planner that throws leaves everything as it was. */
function planAll(
  state: MemoryState,
  batch: readonly ScheduleRecord[],
  { plan, lookaheadMs }: AdvanceRequest,
): [ScheduleRecord, Plan][] {
  const horizon = state.now + lookaheadMs
  try {
    return batch.map((record) => [record, plan(plannable(record.schedule), unfinishedOf(record), state.now, horizon)])
  } catch (error) {
    for (const record of batch) state.due.push(record)
    throw error
  }
}

function unfinishedOf({ schedule, lane }: ScheduleRecord): Unfinished[] {
  if (schedule.definition.overlap === 'allow') return []
  return [...lane.engaged].map(({ state, attempt, origin, tick }) => ({
    state: state === 'running' || state === 'waiting' ? state : 'ready',
    started: attempt > 0,
    ...(origin === 'tick' && tick !== undefined ? { tick } : {}),
  }))
}

/** Returns how many ticks were new. No instant is recorded twice: the cursor excludes all up to it, and the lane the runs after it. */
function applyTicks(state: MemoryState, record: ScheduleRecord, plan: Plan): number {
  const { lane, schedule } = record
  const { retractThrough = Number.NEGATIVE_INFINITY, cancelUnfinished, ticks } = plan
  for (const run of unclaimedRuns(lane)) if ((run.tick ?? 0) <= retractThrough) skipRun(state, run, 'missed')
  if (cancelUnfinished) makeWay(state, lane)
  const fresh = ticks.filter(({ at }) => !lane.runs.has(at) && at > schedule.cursor)
  for (const tick of fresh) recordTick(state, record, tick)
  return fresh.length
}

function recordTick(state: MemoryState, { schedule, payload, lane }: ScheduleRecord, tick: PlannedTick): void {
  const { target, priority, keep, key } = schedule.definition
  const run = addRun(state, {
    ...{ target, origin: 'tick', lane, tick: tick.at, payload, priority, keep, key },
    ...{ createdAt: state.now, readyAt: tick.readyAt, startBy: tick.startBy, byDeadline: tick.byDeadline },
    queue: queueOf(state, targetName(target)),
  })
  if (tick.waits) {
    makeWait(state, run, 'overlap')
    state.freedLanes.add(lane)
  } else makeReady(state, run)
}
