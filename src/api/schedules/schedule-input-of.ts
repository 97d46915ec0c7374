/** A schedule as its author could have written it: what was parsed, as text again. */
import { failure, quote } from '../../core/errors.js'
import type { Mutable } from '../../core/mutable.js'
import { DEFAULT_MISSED, type Missed } from '../../core/policies.js'
import type { ScheduleDefinition } from '../../core/schedule.js'
import { durationText } from '../../time/duration.js'
import type { ParsedTimeline } from '../../time/timeline.js'
import type { ScheduleInput } from './schedule-input.js'
import type { SchedulePatch } from './schedules.js'

/**
 * Parsed again, it is the same definition; all but the exclusive key and the app, which its author does not write.
 *
 * Field by field, here and where answers are made of it: lists have thousands of them, and spreads are ten times as slow.
 */
export function inputOf(definition: ScheduleDefinition): ScheduleInput {
  return addInput({}, definition)
}

/** The same, added to what is made already. */
export function addInput<Made extends object>(made: Made, definition: ScheduleDefinition): Made & ScheduleInput {
  const { timeline, startsAt, endsAt, target, payload, missed, deadlineMs, jitterMs, times } = definition
  const input: Made & Mutable<ScheduleInput> = made
  addTimeline(input, timeline)
  if (startsAt !== undefined) input.startsAt = iso(startsAt)
  if (endsAt !== undefined) input.endsAt = iso(endsAt)
  if ('job' in target) input.job = target.job
  else {
    input.to = target.sink
    if (target.options !== undefined) input.toOptions = target.options
  }
  input.payload = payload
  input.overlap = definition.overlap
  input.missed = missedInput(missed)
  if (deadlineMs !== undefined) input.deadline = durationText(deadlineMs)
  if (jitterMs !== 0) input.jitter = durationText(jitterMs)
  if (times !== undefined) input.times = times
  input.priority = definition.priority
  input.keep = definition.keep
  input.onFinish = definition.onFinish
  return input
}

const TIMELINES = ['cron', 'every', 'at'] as const

/** What a schedule would be with some fields changed. */
export function patchedInput(id: string, definition: ScheduleDefinition, changes: SchedulePatch): ScheduleInput {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
    throw failure('OPTION_INVALID', `patch of "${id}": ${quote(changes)} is no set of changes; give an object`)
  }
  const dropped = new Set<string>()
  if (TIMELINES.some((kind) => given(changes, kind))) for (const kind of TIMELINES) dropped.add(kind)
  // Clock changes and zones belong to cron; an interval knows neither.
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

function addTimeline(input: Mutable<ScheduleInput>, timeline: ParsedTimeline): void {
  if ('cron' in timeline) {
    input.cron = timeline.cron
    if (timeline.timezone !== undefined) input.timezone = timeline.timezone
    if (timeline.dst !== undefined) input.dst = timeline.dst
  } else if ('every' in timeline) input.every = durationText(timeline.every)
  else {
    const instants = timeline.at.map(iso)
    input.at = instants.length === 1 && instants[0] !== undefined ? instants[0] : instants
  }
}

function missedInput({ policy, withinMs, max }: Missed): NonNullable<ScheduleInput['missed']> {
  const most = policy === 'all' && max !== DEFAULT_MISSED.max ? { max } : {}
  if (withinMs === undefined && most.max === undefined) return policy
  return { policy, ...(withinMs === undefined ? {} : { within: durationText(withinMs) }), ...most }
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}
