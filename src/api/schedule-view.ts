import { type Schedule, type ScheduleState, scheduleState } from '../core/schedule.js'
import { scheduleTimeline } from '../core/schedule-timeline.js'

/** A schedule as users see it. */
export interface ScheduleView extends Schedule {
  readonly state: ScheduleState
  /** Its timeline in words. */
  readonly description: string
  readonly next: Date | undefined
}

export function scheduleView(schedule: Schedule): ScheduleView {
  return {
    ...schedule,
    state: scheduleState(schedule),
    description: scheduleTimeline({ ...schedule.definition, anchor: schedule.anchor }).describe(),
    next: schedule.nextAt === undefined || schedule.pausedAt !== undefined ? undefined : new Date(schedule.nextAt),
  }
}
