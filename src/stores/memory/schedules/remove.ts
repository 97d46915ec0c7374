import { decideRemove } from '../../../core/schedules/declare.js'
import type { RemoveResult } from '../../../core/store.js'
import { endRun } from '../runs/transitions.js'
import { type MemoryState, type ScheduleRecord, tidyLane } from '../schema/state.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

export function removeSchedules(state: MemoryState, ids: readonly string[], ifVersion?: number): RemoveResult[] {
  return ids.map((id): RemoveResult => {
    const record = state.schedules.get(id)
    if (record === undefined) return 'missing'
    const { lane, schedule } = record
    if (ifVersion !== undefined && ifVersion !== schedule.version) return 'conflict'
    takeBackTicks(state, lane, decideRemove(schedule, unclaimedTicks(lane), state.now))
    // Ticks between attempts are cancelled. Running runs, and runs that were started by hand, go on.
    for (const run of [...lane.engaged]) {
      if (run.origin === 'tick' && run.attempt > 0 && run.state !== 'running') endRun(state, run, 'cancelled')
    }
    forgetSchedule(state, record)
    return 'removed'
  })
}

export function forgetSchedule(state: MemoryState, record: ScheduleRecord): void {
  const { schedule, lane } = record
  state.due.remove(record)
  state.finished.delete(record)
  state.unstamped.delete(schedule.id)
  state.schedules.delete(schedule.id)
  state.sortedIds.delete(schedule.id)
  tidyLane(state, lane)
}
