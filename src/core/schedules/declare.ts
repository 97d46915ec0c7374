/**
 * Decides what a put, pause, resume or removal does to a schedule, for all stores. A store reads the schedule, calls one of
 * these pure functions with its own time, and writes the result in one transaction.
 */
import type { Timeline } from '../../time/timeline.js'
import { canonicalJson, type Json } from '../checks/json.js'
import { failure } from '../errors.js'
import type { Mutable } from '../mutable.js'
import type { SkipReason } from '../policies.js'
import { type Plan, plan, type SkipRange, skipRange } from './plan.js'
import { plannable, type Schedule, type ScheduleDefinition } from './schedule.js'
import { cutTimeline, scheduleTimeline } from './schedule-timeline.js'

/** A tick that was recorded and never claimed. */
export interface UnclaimedTick {
  readonly run: string
  readonly tick: number
}

/** What happens to unclaimed ticks: those still in the future are deleted, those already due are skipped. */
export interface TakeBack {
  readonly remove: readonly string[]
  readonly skip: readonly string[]
  readonly reason: SkipReason
  /** Due ticks that no instance has recorded yet. The write ends their timeline, so it records them as skipped. */
  readonly unrecorded: readonly SkipRange[]
}

export type PutDecision =
  | { readonly outcome: 'unchanged'; readonly schedule: Schedule }
  | { readonly outcome: 'created' | 'updated'; readonly schedule: Schedule; readonly takeBack: TakeBack }

const NOTHING: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

/**
 * Creates or replaces a schedule.
 *
 * - An equal definition writes nothing.
 * - An equal timeline keeps anchor and cursor. Due ticks stay as they were recorded. Future ticks are taken back, and
 *   recorded again with the new payload and options.
 * - A changed timeline starts at now.
 * - A paused schedule stays paused: a deploy must not undo an operator's pause.
 */
export function decidePut(
  id: string,
  definition: ScheduleDefinition,
  existing: Schedule | undefined,
  unclaimed: readonly UnclaimedTick[],
  version: number,
  now: number,
): PutDecision {
  if (existing === undefined) {
    return {
      outcome: 'created',
      schedule: startTimeline({ id, definition, version, createdAt: now }, now),
      takeBack: NOTHING,
    }
  }
  return replace(existing, withKnownKey(definition, existing.definition), unclaimed, version, now)
}

function replace(
  existing: Schedule,
  definition: ScheduleDefinition,
  unclaimed: readonly UnclaimedTick[],
  version: number,
  now: number,
): PutDecision {
  const { id } = existing
  if (sameDefinition(existing.definition, definition)) return { outcome: 'unchanged', schedule: existing }
  const keepsTimeline = sameTimeline(existing.definition, definition)
  const { schedule: rewound, takeBack } = takeBackUnclaimed(existing, unclaimed, now, 'replaced')
  if (!keepsTimeline) {
    const schedule = startTimeline({ id, definition, version, createdAt: existing.createdAt }, now, rewound)
    return {
      outcome: 'updated',
      schedule,
      takeBack: { ...takeBack, unrecorded: unrecordedTicks(rewound, now, schedule) },
    }
  }
  const { anchor, cursor, createdAt } = rewound
  const remaining = definition.times === existing.definition.times ? rewound.remaining : definition.times
  const kept: Schedule = {
    ...{ id, version, definition, anchor, cursor, createdAt, updatedAt: now },
    ...(remaining === undefined ? {} : { remaining }),
  }
  return { outcome: 'updated', schedule: withNext(withPause(kept, existing), now), takeBack: { ...takeBack, skip: [] } }
}

/** Pauses a schedule from now on. Ticks that were recorded and never claimed are taken back. */
export function decidePause(
  schedule: Schedule,
  unclaimed: readonly UnclaimedTick[],
  version: number,
  now: number,
  note: string | undefined,
): { readonly schedule: Schedule; readonly takeBack: TakeBack } {
  const { schedule: rewound, takeBack } = takeBackUnclaimed(schedule, unclaimed, now, 'paused')
  const { dueAt: _, pauseNote: __, ...rest } = rewound
  const pausedAt = schedule.pausedAt ?? now
  const paused = { ...rest, version, pausedAt, updatedAt: now, ...(note === undefined ? {} : { pauseNote: note }) }
  return { schedule: withNext(paused, now), takeBack }
}

/** Ends a pause. The ticks inside it are skipped as one range. */
export function decideResume(
  schedule: Schedule,
  version: number,
  now: number,
): { readonly schedule: Schedule; readonly skips: Plan['skips'] } {
  const { skips, cursor } = plan(plannable(schedule), [], now, now)
  const { pausedAt: _, pauseNote: __, ...rest } = schedule
  return { schedule: withNext({ ...rest, cursor, version, updatedAt: now }, now), skips }
}

/** Skips or deletes the ticks that were recorded and never claimed. */
export function decideRemove(schedule: Schedule, unclaimed: readonly UnclaimedTick[], now: number): TakeBack {
  const { schedule: rewound, takeBack } = takeBackUnclaimed(schedule, unclaimed, now, 'removed')
  return { ...takeBack, unrecorded: unrecordedTicks(rewound, now) }
}

/** The schedule after a plan was recorded. A plan that was made from an older cursor changes nothing: cursors only grow. */
export function applyPlan(schedule: Schedule, { cursor, remaining, nextAt, dueAt }: Plan, now: number): Schedule {
  if (cursor < schedule.cursor) return schedule
  // The fields are copied one by one, because this runs once a tick and a rest pattern takes ten times as long.
  const { id, version, definition, anchor, createdAt, updatedAt, pausedAt, pauseNote } = schedule
  return {
    ...{ id, version, definition, anchor, cursor, createdAt, updatedAt },
    ...(pausedAt === undefined ? {} : { pausedAt }),
    ...(pauseNote === undefined ? {} : { pauseNote }),
    ...(remaining === undefined ? {} : { remaining }),
    ...(nextAt === undefined ? { finishedAt: now } : { nextAt }),
    ...(dueAt === undefined ? {} : { dueAt }),
  }
}

/** A writer without the job's code cannot compute a function key. It keeps the key that was computed for the same payload. */
function withKnownKey(definition: ScheduleDefinition, existing: ScheduleDefinition): ScheduleDefinition {
  if (definition.key !== 'unstamped' || existing.key === 'unstamped') return definition
  const { key: _, ...rest } = definition
  const one = canonicalJson([rest.target, rest.payload] as unknown as Json)
  if (one !== canonicalJson([existing.target, existing.payload] as unknown as Json)) return definition
  return existing.key === undefined ? rest : { ...rest, key: existing.key }
}

/** Whether a put of `other` over `one` keeps anchor and cursor. */
export function sameTimeline(one: ScheduleDefinition, other: ScheduleDefinition): boolean {
  return timelineText(one) === timelineText(other)
}

export function sameDefinition(one: ScheduleDefinition, other: ScheduleDefinition): boolean {
  return canonicalJson(one as unknown as Json) === canonicalJson(other as unknown as Json)
}

function timelineText({ timeline, startsAt, endsAt }: ScheduleDefinition): string {
  return canonicalJson({ timeline, startsAt: startsAt ?? null, endsAt: endsAt ?? null } as unknown as Json)
}

type Identity = Pick<Schedule, 'id' | 'definition' | 'version' | 'createdAt'>

/** A schedule whose timeline begins now. `replaced` is its earlier version, if there was one. */
function startTimeline({ id, definition, version, createdAt }: Identity, now: number, replaced?: Schedule): Schedule {
  const { timeline, startsAt, times } = definition
  // `startsAt` of an interval is its first tick, so the anchor lies one interval before it.
  const anchor = 'every' in timeline && startsAt !== undefined ? startsAt - timeline.every : now
  const earliest = replaced === undefined ? Number.NEGATIVE_INFINITY : lowestCursor(replaced, now)
  const cursor = Math.max(Math.min(firstCursor(definition, now), now), earliest)
  const begun: Mutable<Schedule> = { id, version, definition, anchor, cursor, createdAt, updatedAt: now }
  if (times !== undefined) begun.remaining = times
  const schedule = withNext(replaced === undefined ? begun : withPause(begun, replaced), now)
  if (schedule.nextAt !== undefined) return schedule
  throw failure(
    'OPTION_INVALID',
    `schedule "${id}" would never fire: its timeline has no tick after ${new Date(now).toISOString()}`,
  )
}

/** The cursor of a new timeline. An instant that the author named and that passed within `grace` still fires. */
function firstCursor({ timeline, startsAt, missed }: ScheduleDefinition, now: number): number {
  const justPassed = now - missed.graceMs - 1
  if ('at' in timeline) return justPassed
  return 'every' in timeline && startsAt !== undefined && startsAt > justPassed ? startsAt - 1 : now
}

/**
 * The lowest cursor that a new timeline may have. It lies after the ticks of the replaced timeline, and after the whole
 * second of its last tick, because ids of events have a resolution of one second.
 */
function lowestCursor(replaced: Schedule, now: number): number {
  if (replaced.cursor > now) return now
  const line = scheduleTimeline({ ...replaced.definition, anchor: replaced.anchor })
  const endsWithTick = line.next(replaced.cursor - 1) === replaced.cursor
  return endsWithTick ? Math.floor(replaced.cursor / 1_000) * 1_000 + 999 : replaced.cursor
}

/**
 * Takes back ticks that were never claimed. The cursor moves back before the first future tick, and `remaining` grows
 * by the number of future ticks. So they are recorded again if the timeline continues.
 */
function takeBackUnclaimed(
  schedule: Schedule,
  unclaimed: readonly UnclaimedTick[],
  now: number,
  reason: SkipReason,
): { schedule: Schedule; takeBack: TakeBack } {
  const future = unclaimed.filter(({ tick }) => tick > now)
  const due = unclaimed.filter(({ tick }) => tick <= now)
  const takeBack = { remove: future.map(({ run }) => run), skip: due.map(({ run }) => run), reason, unrecorded: [] }
  if (future.length === 0) return { schedule, takeBack }
  const first = Math.min(...future.map(({ tick }) => tick))
  const remaining = schedule.remaining === undefined ? {} : { remaining: schedule.remaining + future.length }
  return { schedule: { ...schedule, cursor: first - 1, ...remaining }, takeBack }
}

/**
 * The due ticks of an ending timeline that no instance has recorded, as ranges to skip. Instants at which the successor
 * fires are left out.
 */
function unrecordedTicks(ended: Schedule, now: number, successor?: Schedule): SkipRange[] {
  if (ended.remaining === 0) return []
  const reason = ended.pausedAt !== undefined ? 'paused' : successor === undefined ? 'removed' : 'replaced'
  const line = lineOf(ended)
  const fires = successor === undefined ? [] : lineOf(successor).between(successor.cursor, now, Number.MAX_SAFE_INTEGER)
  const ranges: SkipRange[] = []
  let after = ended.cursor
  for (const end of [...fires, now + 1]) {
    const range = skipRange(line, after, end - 1, reason)
    if (range !== undefined) ranges.push(range)
    after = end
  }
  return ranges
}

function lineOf({ definition: { timeline, startsAt, endsAt }, anchor }: Schedule): Timeline {
  return cutTimeline(timeline, anchor, startsAt, endsAt)
}

function withPause(schedule: Schedule, { pausedAt, pauseNote }: Schedule): Schedule {
  if (pausedAt === undefined) return schedule
  return { ...schedule, pausedAt, ...(pauseNote === undefined ? {} : { pauseNote }) }
}

/** The schedule with its next tick, or finished if it has none. The fields are copied one by one, as in `applyPlan`. */
function withNext(schedule: Schedule, now: number): Schedule {
  const { id, version, definition, anchor, cursor, createdAt, updatedAt, remaining, pausedAt, pauseNote } = schedule
  const next: Mutable<Schedule> = { id, version, definition, anchor, cursor, createdAt, updatedAt }
  if (remaining !== undefined) next.remaining = remaining
  if (pausedAt !== undefined) next.pausedAt = pausedAt
  if (pauseNote !== undefined) next.pauseNote = pauseNote
  const nextAt = remaining === 0 ? undefined : lineOf(schedule).next(cursor)
  if (nextAt === undefined) next.finishedAt = schedule.finishedAt ?? now
  else {
    next.nextAt = nextAt
    if (pausedAt === undefined) next.dueAt = nextAt
  }
  return next
}
