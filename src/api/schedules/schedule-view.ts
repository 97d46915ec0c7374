import type { Mutable } from '../../core/mutable.js'
import { type Schedule, type ScheduleState, scheduleState } from '../../core/schedule.js'
import { cutTimeline } from '../../core/schedule-timeline.js'

/** A schedule as users see it. */
export interface ScheduleView extends Schedule {
  readonly state: ScheduleState
  /** Its timeline in words. */
  readonly description: string
  readonly next: Date | undefined
}

/** Field by field: every answer has one, and a spread takes thirty times as long and leaves garbage that is slow to go. */
export function scheduleView(schedule: Schedule): ScheduleView {
  const { id, version, definition, anchor, cursor, createdAt, updatedAt } = schedule
  const { remaining, nextAt, dueAt, pausedAt, pauseNote, finishedAt } = schedule
  const { timeline, startsAt, endsAt } = definition
  const view: Mutable<ScheduleView> = {
    id,
    version,
    definition,
    anchor,
    cursor,
    createdAt,
    updatedAt,
    state: scheduleState(schedule),
    description: cutTimeline(timeline, anchor, startsAt, endsAt).describe(),
    next: nextAt === undefined || pausedAt !== undefined ? undefined : new Date(nextAt),
  }
  if (remaining !== undefined) view.remaining = remaining
  if (nextAt !== undefined) view.nextAt = nextAt
  if (dueAt !== undefined) view.dueAt = dueAt
  if (pausedAt !== undefined) view.pausedAt = pausedAt
  if (pauseNote !== undefined) view.pauseNote = pauseNote
  if (finishedAt !== undefined) view.finishedAt = finishedAt
  return view
}
