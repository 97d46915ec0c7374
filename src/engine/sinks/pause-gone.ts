import { canonicalJson, type Json } from '../../core/json.js'
import type { Logger } from '../../core/logger.js'
import type { Target } from '../../core/run.js'
import type { ClaimedRun, ScheduleStore } from '../../core/store.js'

/**
 * Pauses the schedule of a run whose receiver wants nothing more of it. A schedule that has been pointed elsewhere since
 * is left alone: what the old receiver says no longer concerns it.
 */
export async function pauseGone(
  schedules: Pick<ScheduleStore, 'get' | 'pause'>,
  log: Logger,
  run: ClaimedRun,
  note: string,
): Promise<void> {
  if (run.schedule === undefined) return
  const schedule = await schedules.get(run.schedule)
  if (schedule === undefined || schedule.pausedAt !== undefined || schedule.finishedAt !== undefined) return
  if (targetText(schedule.definition.target) !== targetText(run.target)) return
  await schedules.pause(run.schedule, note)
  log.warn({ schedule: run.schedule, run: run.id }, `paused the schedule: ${note}`)
}

function targetText(target: Target): string {
  return canonicalJson(target as unknown as Json)
}
