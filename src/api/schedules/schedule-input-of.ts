/** The reverse of parsing: a definition as the input that its author could have written. */
import { failure, quote } from '../../core/errors.js'
import { DEFAULT_MISSED, type Missed } from '../../core/policies.js'
import type { Target } from '../../core/runs/run.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import { durationText } from '../../time/duration.js'
import type { ParsedTimeline } from '../../time/timeline.js'
import type { ScheduleFields } from './schedule-input.js'
import type { SchedulePatch } from './schedules.js'

/**
 * Converts a definition to input. Parsing that input gives the same definition, except for the exclusive key and the
 * app, which no author writes.
 */
export function inputOf(definition: ScheduleDefinition): ScheduleFields {
  const { timeline, startsAt, endsAt, target, payload, missed, deadlineMs, jitterMs, times } = definition
  const { overlap, backlog, priority, keep, onFinish } = definition
  return {
    ...timelineInput(timeline),
    ...(startsAt === undefined ? {} : { startsAt: iso(startsAt) }),
    ...(endsAt === undefined ? {} : { endsAt: iso(endsAt) }),
    ...targetInput(target),
    payload,
    overlap,
    missed: missedInput(missed),
    ...(backlog === undefined ? {} : { backlog }),
    ...(deadlineMs === undefined ? {} : { deadline: durationText(deadlineMs) }),
    ...(jitterMs === 0 ? {} : { jitter: durationText(jitterMs) }),
    ...(times === undefined ? {} : { times }),
    priority,
    keep,
    onFinish,
  }
}

const TIMELINES = ['cron', 'every', 'at'] as const

/** A schedule's input with some fields changed. */
export function patchedInput(id: string, definition: ScheduleDefinition, changes: SchedulePatch): ScheduleFields {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
    throw failure('OPTION_INVALID', `patch of "${id}": ${quote(changes)} is no set of changes; give an object`)
  }
  const dropped = new Set<string>()
  if (TIMELINES.some((kind) => given(changes, kind))) for (const kind of TIMELINES) dropped.add(kind)
  // An interval has neither a zone nor clock changes.
  if (given(changes, 'every')) dropped.add('timezone')
  if (given(changes, 'every') || given(changes, 'at')) dropped.add('dst')
  if (given(changes, 'job')) dropped.add('to').add('toOptions')
  if (given(changes, 'to')) dropped.add('job')
  const kept = Object.entries(inputOf(definition)).filter(([field]) => !dropped.has(field))
  const patched = Object.entries({ ...Object.fromEntries(kept), ...changes }).filter(([, value]) => value !== null)
  return Object.fromEntries(patched)
}

function given(changes: SchedulePatch, field: keyof SchedulePatch): boolean {
  return changes[field] !== undefined && changes[field] !== null
}

function timelineInput(timeline: ParsedTimeline): ScheduleFields {
  if ('cron' in timeline) return timeline
  if ('every' in timeline) return { every: durationText(timeline.every) }
  const [first, ...others] = timeline.at.map(iso)
  return { at: first !== undefined && others.length === 0 ? first : timeline.at.map(iso) }
}

function targetInput(target: Target): ScheduleFields {
  if ('job' in target) return { job: target.job }
  return { to: target.sink, ...(target.options === undefined ? {} : { toOptions: target.options }) }
}

function missedInput({ policy, withinMs, max }: Missed): NonNullable<ScheduleFields['missed']> {
  const most = policy === 'all' && max !== DEFAULT_MISSED.max ? { max } : {}
  if (withinMs === undefined && most.max === undefined) return policy
  return { policy, ...(withinMs === undefined ? {} : { within: durationText(withinMs) }), ...most }
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}
