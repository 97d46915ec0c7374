import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { breather } from '../../core/in-turns.js'
import { type PlannedTick, plan } from '../../core/schedules/plan.js'
import { plannable, type Schedule } from '../../core/schedules/schedule.js'
import { scheduleTimeline } from '../../core/schedules/schedule-timeline.js'
import type { Store } from '../../core/store.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { foundSchedule } from './found-schedule.js'
import { parseSchedule, type ScheduleFields } from './schedule-input.js'

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
  what: string | ScheduleFields,
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
  const most = Math.min(count, await ticksLeft(schedule, after))
  const ticks: PreviewedTick[] = []
  for await (const part of plannedTicks(schedule, after, Number.POSITIVE_INFINITY, most)) {
    ticks.push(...part.map(({ at, readyAt }) => ({ at: new Date(at), readyAt: new Date(readyAt) })))
  }
  return ticks
}

/** So many ticks are planned in one go: less than a millisecond, unless the time zone is used for the first time. */
const PART = 50
/** So much of a timeline is counted in one go. */
const COUNTED_MS = 250 * 365.25 * 24 * 3_600_000

/** Calls the planner, so that the ticks are those that would fire. Yields parts, between which the event loop turns. */
export async function* plannedTicks(
  schedule: Schedule,
  after: number,
  until: number,
  limit: number,
): AsyncGenerator<readonly PlannedTick[]> {
  const breathe = breather()
  let cursor = after
  for (let left = limit; left > 0; ) {
    const { remaining: _, pausedAt: __, deadlineMs: ___, ...rest } = plannable({ ...schedule, cursor })
    const { ticks } = plan({ ...rest, overlap: 'allow' }, [], cursor, until, Math.min(left, PART))
    const last = ticks.at(-1)
    if (last === undefined) return
    yield ticks
    left -= ticks.length
    cursor = last.at
    await breathe()
  }
}

/** How many ticks a schedule with `times` has left after an instant. */
async function ticksLeft({ definition, anchor, cursor, remaining }: Schedule, after: number): Promise<number> {
  if (remaining === undefined) return Number.POSITIVE_INFINITY
  const line = scheduleTimeline({ ...definition, anchor })
  const breathe = breather()
  const [from, to] = after > cursor ? [cursor, after] : [after, cursor]
  let between = 0
  for (let at = from; at < to; at += COUNTED_MS) {
    between += line.count(at, Math.min(at + COUNTED_MS, to))
    await breathe()
  }
  return Math.max(after > cursor ? remaining - between : remaining + between, 0)
}

/** The schedule that a put of the input would create now. */
function draft(input: ScheduleFields, graceMs: number, now: number): Schedule {
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
