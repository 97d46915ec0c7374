import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { plan } from '../../core/schedules/plan.js'
import { plannable, type Schedule } from '../../core/schedules/schedule.js'
import { scheduleTimeline } from '../../core/schedules/schedule-timeline.js'
import type { Store } from '../../core/store.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { foundSchedule } from './found-schedule.js'
import { parseSchedule, type ScheduleInput } from './schedule-input.js'

export interface PreviewedTick {
  readonly at: Date
  /** When the tick's run may start: the tick plus its jitter. */
  readonly readyAt: Date
}

export interface PreviewOptions {
  /** How many ticks. Default 5. */
  readonly count?: number
  /** Start here instead of now. */
  readonly from?: Instant
}

export async function preview(
  store: Store,
  what: string | ScheduleInput,
  options: PreviewOptions,
  graceMs: number,
): Promise<readonly PreviewedTick[]> {
  checkOptions(options, ['count', 'from'], 'preview')
  const { count = DEFAULTS.preview.count, from } = options
  if (!Number.isInteger(count) || count < 0 || count > LIMITS.previewTicks) {
    throw failure(
      'OPTION_INVALID',
      `preview: count is ${quote(count)}; it must be a whole number up to ${LIMITS.previewTicks}`,
    )
  }
  const now = await store.now()
  const schedule =
    typeof what === 'string' ? foundSchedule(what, await store.schedules.get(what)) : draft(what, graceMs, now)
  const after = from === undefined ? now : instantMs(from) - 1
  const most = Math.min(count, ticksLeft(schedule, after))
  return plannedTicks(schedule, after, Number.POSITIVE_INFINITY, most).map(({ at, readyAt }) => ({
    at: new Date(at),
    readyAt: new Date(readyAt),
  }))
}

/** Calls the planner, so that the ticks shown are those that would fire. */
export function plannedTicks(schedule: Schedule, after: number, until: number, limit: number) {
  const { remaining: _, pausedAt: __, deadlineMs: ___, ...rest } = plannable({ ...schedule, cursor: after })
  return plan({ ...rest, overlap: 'allow' }, [], after, until, limit).ticks
}

/** How many ticks a schedule with `times` has left after an instant. */
function ticksLeft({ definition, anchor, cursor, remaining }: Schedule, after: number): number {
  if (remaining === undefined) return Number.POSITIVE_INFINITY
  const line = scheduleTimeline({ ...definition, anchor })
  return Math.max(after > cursor ? remaining - line.count(cursor, after) : remaining + line.count(after, cursor), 0)
}

/** The schedule that a put of the input would create now. */
function draft(input: ScheduleInput, graceMs: number, now: number): Schedule {
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
