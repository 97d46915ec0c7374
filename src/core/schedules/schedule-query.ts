/** Which schedules a list contains, for stores that filter what their indexes find. */
import type { ScheduleQuery } from '../store.js'
import { type Schedule, scheduleState } from './schedule.js'

export function matchesSchedule(schedule: Schedule, { state, job, sink, app }: ScheduleQuery): boolean {
  const { target, app: owner } = schedule.definition
  return (
    (state === undefined || state === scheduleState(schedule)) &&
    (job === undefined || ('job' in target && target.job === job)) &&
    (sink === undefined || ('sink' in target && target.sink === sink)) &&
    (app === undefined || app === owner)
  )
}
