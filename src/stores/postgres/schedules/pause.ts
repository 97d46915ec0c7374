/** Pausing and resuming a schedule. */
import { decidePause, decideResume } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Database } from '../connection/database.js'
import { UNKNOWN_VERSION } from './apply.js'
import { changeSchedules, type ScheduleChange, type Seen } from './change.js'

export function pauseSchedule(db: Database, id: string, note: string | undefined): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    if (schedule.pausedAt !== undefined && schedule.pauseNote === note) return undefined
    return { seen, ...decidePause(schedule, seen.unclaimed, UNKNOWN_VERSION, now, note) }
  })
}

export function resumeSchedule(db: Database, id: string): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    return schedule.pausedAt === undefined ? undefined : { seen, ...decideResume(schedule, UNKNOWN_VERSION, now) }
  })
}

/** Undefined when there is no such schedule; one that needs no change is answered as it is. */
function changeOne(
  db: Database,
  id: string,
  decide: (seen: Seen, schedule: Schedule, now: number) => ScheduleChange | undefined,
): Promise<Schedule | undefined> {
  return changeSchedules(db, { ids: [id] }, ({ now, seen }) => {
    const found = seen.get(id)
    const change = found?.schedule === undefined ? undefined : decide(found, found.schedule, now)
    const { schedule } = change ?? {}
    if (change === undefined || schedule === undefined) return { changes: [], outcome: () => found?.schedule }
    return {
      changes: [change],
      outcome: (versions) => ({ ...schedule, version: versions.get(id) ?? UNKNOWN_VERSION }),
    }
  })
}
