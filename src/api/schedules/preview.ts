/** The ticks that a schedule would have: of one that is stored, or of one that is not put yet. */
import { failure, quote } from '../../core/errors.js'
import { plan } from '../../core/plan.js'
import { plannable, type Schedule } from '../../core/schedule.js'
import { scheduleTimeline } from '../../core/schedule-timeline.js'
import { parseSchedule, type ScheduleInput } from './schedule-input.js'

export interface PreviewedTick {
  readonly at: Date
  /** With jitter: when its run may start. */
  readonly readyAt: Date
}

/** Ticks by the planner itself, so that what is shown is what would fire. */
export function plannedTicks(schedule: Schedule, after: number, until: number, limit: number) {
  const { remaining: _, pausedAt: __, deadlineMs: ___, ...rest } = plannable({ ...schedule, cursor: after })
  return plan({ ...rest, overlap: 'allow' }, [], after, until, limit).ticks
}

/** How many ticks a schedule has to give after an instant, when their number is limited. */
function ticksLeft({ definition, anchor, cursor, remaining }: Schedule, after: number): number {
  if (remaining === undefined) return Number.POSITIVE_INFINITY
  const line = scheduleTimeline({ ...definition, anchor })
  return Math.max(after > cursor ? remaining - line.count(cursor, after) : remaining + line.count(after, cursor), 0)
}

/** The next of them, as many as there are to give. */
export function previewedTicks(schedule: Schedule, after: number, count: number): readonly PreviewedTick[] {
  const most = Math.min(count, ticksLeft(schedule, after))
  return plannedTicks(schedule, after, Number.POSITIVE_INFINITY, most).map(({ at, readyAt }) => ({
    at: new Date(at),
    readyAt: new Date(readyAt),
  }))
}

/** A schedule as it would be if it were put now. */
export function draft(input: ScheduleInput, graceMs: number, now: number): Schedule {
  if (typeof input !== 'object' || input === null) {
    throw failure('OPTION_INVALID', `preview: ${quote(input)} is neither the id of a schedule nor a schedule`)
  }
  const target = input.job === undefined && input.to === undefined ? { job: 'preview' } : {}
  const definition = parseSchedule('preview', { ...input, ...target }, graceMs)
  const { timeline, startsAt, times } = definition
  const anchor = 'every' in timeline && startsAt !== undefined ? startsAt - timeline.every : now
  const begun = { id: 'preview', version: 0, definition, anchor, cursor: now, createdAt: now, updatedAt: now }
  return times === undefined ? begun : { ...begun, remaining: times }
}
