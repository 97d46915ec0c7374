/** Pausing and resuming a schedule. */
import { decidePause, decideResume } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Database } from '../connection/database.js'
import { changeSchedules, type ScheduleChange, type Seen } from './change.js'

export function pauseSchedule(db: Database, id: string, note: string | undefined): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    if (schedule.pausedAt !== undefined && schedule.pauseNote === note) return undefined
    return { seen, ...decidePause(schedule, seen.unclaimed, seen.nextVersion, now, note) }
  })
}

export function resumeSchedule(db: Database, id: string): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    return schedule.pausedAt === undefined ? undefined : { seen, ...decideResume(schedule, seen.nextVersion, now) }
  })
}

/** Returns undefined if the schedule does not exist. A schedule that needs no change is returned as it is. */
function changeOne(
  db: Database,
  id: string,
  decide: (seen: Seen, schedule: Schedule, now: number) => ScheduleChange | undefined,
): Promise<Schedule | undefined> {
  return changeSchedules(db, { ids: [id] }, (now, all) => {
    const seen = all.get(id)
    const change = seen?.schedule === undefined ? undefined : decide(seen, seen.schedule, now)
    return change === undefined
      ? { changes: [], result: seen?.schedule }
      : { changes: [change], result: change.schedule }
  })
}
