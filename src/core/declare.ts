/**
 * What a write to a schedule does, decided in one place for all stores: they read, ask here, and write the answer in
 * one transaction. Nothing here looks at a clock or at code: all it knows is what the store has and the store's now.
 */
import type { Timeline } from '../time/timeline.js'
import { failure } from './errors.js'
import { canonicalJson, type Json } from './json.js'
import type { Mutable } from './mutable.js'
import { type Plan, plan, type SkipRange, skipRange } from './plan.js'
import type { SkipReason } from './policies.js'
import { plannable, type Schedule, type ScheduleDefinition } from './schedule.js'
import { cutTimeline, scheduleTimeline } from './schedule-timeline.js'

/** A tick that was recorded and never claimed. */
export interface UnclaimedTick {
  readonly run: string
  readonly tick: number
}

/** What becomes of unclaimed ticks: those still in the future are deleted, those already due are skipped. */
export interface TakeBack {
  readonly remove: readonly string[]
  readonly skip: readonly string[]
  readonly reason: SkipReason
  /** Ticks that were due and that nobody had recorded yet: their timeline ends here, so this is where they are. */
  readonly unrecorded: readonly SkipRange[]
}

export type PutDecision =
  | { readonly outcome: 'unchanged'; readonly schedule: Schedule }
  | { readonly outcome: 'created' | 'updated'; readonly schedule: Schedule; readonly takeBack: TakeBack }

const NOTHING: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

/**
 * Creates or replaces a schedule.
 *
 * Equal in everything, it writes nothing. With an equal timeline it keeps anchor and cursor, and due ticks stay as they
 * were recorded; future ones are taken back so that they are recorded again with what is new. A changed timeline starts
 * at now. A pause is the operator's and outlives a put.
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
    return { outcome: 'created', schedule: start({ id, definition, version, createdAt: now }, now), takeBack: NOTHING }
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
  const { schedule: rewound, takeBack } = rewind(existing, unclaimed, now, 'replaced')
  if (!keepsTimeline) {
    const schedule = start({ id, definition, version, createdAt: existing.createdAt }, now, rewound)
    return { outcome: 'updated', schedule, takeBack: { ...takeBack, unrecorded: passedOver(rewound, now, schedule) } }
  }
  const { anchor, cursor, createdAt } = rewound
  const remaining = definition.times === existing.definition.times ? rewound.remaining : definition.times
  const kept: Schedule = {
    ...{ id, version, definition, anchor, cursor, createdAt, updatedAt: now },
    ...(remaining === undefined ? {} : { remaining }),
  }
  return { outcome: 'updated', schedule: withNext(withPause(kept, existing), now), takeBack: { ...takeBack, skip: [] } }
}

/** Stops firing. The pause begins now; ticks that were recorded and never claimed are taken back. */
export function decidePause(
  schedule: Schedule,
  unclaimed: readonly UnclaimedTick[],
  version: number,
  now: number,
  note: string | undefined,
): { readonly schedule: Schedule; readonly takeBack: TakeBack } {
  const { schedule: rewound, takeBack } = rewind(schedule, unclaimed, now, 'paused')
  const { dueAt: _, pauseNote: __, ...rest } = rewound
  const pausedAt = schedule.pausedAt ?? now
  const paused = { ...rest, version, pausedAt, updatedAt: now, ...(note === undefined ? {} : { pauseNote: note }) }
  return { schedule: withNext(paused, now), takeBack }
}

/** Fires again. The ticks inside the pause are skipped as one range. */
export function decideResume(
  schedule: Schedule,
  version: number,
  now: number,
): { readonly schedule: Schedule; readonly skips: Plan['skips'] } {
  const { skips, cursor } = plan(plannable(schedule), [], now, now)
  const { pausedAt: _, pauseNote: __, ...rest } = schedule
  return { schedule: withNext({ ...rest, cursor, version, updatedAt: now }, now), skips }
}

/** What a removal does to ticks that were recorded and never claimed. */
export function decideRemove(schedule: Schedule, unclaimed: readonly UnclaimedTick[], now: number): TakeBack {
  const { schedule: rewound, takeBack } = rewind(schedule, unclaimed, now, 'removed')
  return { ...takeBack, unrecorded: passedOver(rewound, now) }
}

/** The schedule after a plan was recorded. One made from an older reading moves nothing back: cursors only grow. */
export function applyPlan(schedule: Schedule, { cursor, remaining, nextAt, dueAt }: Plan, now: number): Schedule {
  if (cursor < schedule.cursor) return schedule
  // Field by field: this is done once a tick, and leaving fields out by rest is ten times as slow.
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

/** Whoever writes without the job's code keeps the key that the code computed for the same payload. */
function withKnownKey(definition: ScheduleDefinition, existing: ScheduleDefinition): ScheduleDefinition {
  if (definition.key !== 'unstamped' || existing.key === 'unstamped') return definition
  const { key: _, ...rest } = definition
  const one = canonicalJson([rest.target, rest.payload] as unknown as Json)
  if (one !== canonicalJson([existing.target, existing.payload] as unknown as Json)) return definition
  return existing.key === undefined ? rest : { ...rest, key: existing.key }
}

/** Timeline fields: what a put must leave alone to keep anchor and cursor. */
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

/** A schedule whose timeline begins now, in the place of another one if there was one. */
function start({ id, definition, version, createdAt }: Identity, now: number, replaced?: Schedule): Schedule {
  const { timeline, startsAt, times } = definition
  // The user who names the first instant of an interval means a tick, so the anchor lies one interval before it.
  const anchor = 'every' in timeline && startsAt !== undefined ? startsAt - timeline.every : now
  const earliest = replaced === undefined ? Number.NEGATIVE_INFINITY : ending(replaced, now)
  const cursor = Math.max(Math.min(beginning(definition, now), now), earliest)
  const begun: Mutable<Schedule> = { id, version, definition, anchor, cursor, createdAt, updatedAt: now }
  if (times !== undefined) begun.remaining = times
  const schedule = withNext(replaced === undefined ? begun : withPause(begun, replaced), now)
  if (schedule.nextAt !== undefined) return schedule
  throw failure(
    'OPTION_INVALID',
    `schedule "${id}" would never fire: its timeline has no tick after ${new Date(now).toISOString()}`,
  )
}

/** Where the cursor of a new timeline stands. An instant that its author named and that has just passed still fires. */
function beginning({ timeline, startsAt, missed }: ScheduleDefinition, now: number): number {
  const justPassed = now - missed.graceMs - 1
  if ('at' in timeline) return justPassed
  return 'every' in timeline && startsAt !== undefined && startsAt > justPassed ? startsAt - 1 : now
}

/**
 * What a new timeline may not go back behind: the ticks of the one that it replaces, and the rest of the second of the
 * last one, because ids of events tell ticks apart by the second.
 */
function ending(replaced: Schedule, now: number): number {
  if (replaced.cursor > now) return now
  const line = scheduleTimeline({ ...replaced.definition, anchor: replaced.anchor })
  const endsWithTick = line.next(replaced.cursor - 1) === replaced.cursor
  return endsWithTick ? Math.floor(replaced.cursor / 1_000) * 1_000 + 999 : replaced.cursor
}

/**
 * Takes back ticks that were never claimed. For those still in the future the cursor moves back before the first of
 * them and `remaining` is given back, so that nothing is lost if the timeline goes on.
 */
function rewind(
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
 * The ticks that a timeline which ends now still owes, as ranges. An instant that its successor begins with is left out:
 * there it fires.
 */
function passedOver(ended: Schedule, now: number, successor?: Schedule): SkipRange[] {
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

/** Works out when the schedule ticks next, and whether it still does. Field by field, as in `applyPlan`. */
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
