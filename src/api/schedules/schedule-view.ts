import { type Schedule, type ScheduleState, scheduleState } from '../../core/schedules/schedule.js'
import { cutTimeline } from '../../core/schedules/schedule-timeline.js'

export interface ScheduleView extends Schedule {
  readonly state: ScheduleState
  /** Its timeline in words. */
  readonly description: string
  readonly next: Date | undefined
}

export function scheduleView(schedule: Schedule): ScheduleView {
  const { definition, anchor, nextAt, pausedAt } = schedule
  const { timeline, startsAt, endsAt } = definition
  return {
    ...schedule,
    state: scheduleState(schedule),
    description: cutTimeline(timeline, anchor, startsAt, endsAt).describe(),
    next: nextAt === undefined || pausedAt !== undefined ? undefined : new Date(nextAt),
  }
}
