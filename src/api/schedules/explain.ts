/** Answers "why did it not fire at 09:00?" from the store's records. */

import type { SkipReason } from '../../core/policies.js'
import type { Run } from '../../core/runs/run.js'
import type { SkipRange } from '../../core/schedules/plan.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import { scheduleTimeline } from '../../core/schedules/schedule-timeline.js'
import type { Store } from '../../core/store.js'
import { type Answer, explainRun, iso, type Names, obstacles, REASONS } from './explain-run.js'
import { refuseMissing } from './found-schedule.js'
import { hasTraces } from './ticks.js'

export interface ExplainOptions {
  /** `own` names no run, lock holder or process that does not belong to the schedule. Default all. */
  readonly names?: Names
}

export interface Explanation {
  readonly at: Date
  readonly status: /** It was removed, and the history has nothing of this instant. */
    | 'unknown-schedule'
    | 'not-a-tick'
    | 'before-creation'
    | 'ran'
    | 'failed'
    | 'cancelled'
    | 'running'
    | 'waiting'
    | 'skipped'
    | 'upcoming'
    | 'due'
    /** The schedule is paused: it gives no tick until it is resumed. */
    | 'paused'
    /** The schedule has given all its ticks. */
    | 'finished'
    /** It was recorded, but its details have been pruned. */
    | 'forgotten'
  readonly reason?: SkipReason
  readonly run?: Run
  /** The answer in a sentence or two. */
  readonly text: string
}

export async function explain(store: Store, id: string, at: number, names: Names): Promise<Explanation> {
  return { at: new Date(at), ...(await explainTick(store, id, at, names)) }
}

/** The newest past tick; without one, the next tick or the present. */
export async function newestTick(store: Store, id: string): Promise<number> {
  const [schedule, now] = await Promise.all([store.schedules.get(id), store.now()])
  if (schedule === undefined) return (await newestRecorded(store, id)) ?? now
  const line = scheduleTimeline({ ...schedule.definition, anchor: schedule.anchor })
  return line.previous(now + 1) ?? line.next(now) ?? now
}

/** The newest recorded tick of a removed schedule, whose timeline is gone. */
async function newestRecorded(store: Store, id: string): Promise<number | undefined> {
  const { items } = await store.runs.list({ schedule: id, limit: 10 })
  return items.find(({ origin }) => origin === 'tick')?.tick
}

async function explainTick(store: Store, id: string, at: number, names: Names): Promise<Answer> {
  const { items } = await store.runs.list({ schedule: id, tick: at, limit: 10 })
  const run = items.find(({ origin }) => origin === 'tick')
  if (run !== undefined) return explainRun(store, run, names)
  const schedule = await store.schedules.get(id)
  const line = schedule && scheduleTimeline({ ...schedule.definition, anchor: schedule.anchor })
  const isTick = line?.next(at - 1) === at
  const [skip] = await store.schedules.skips(id, at, at, 1)
  // Both ends of a skipped range were ticks. An instant between them is a tick if the present timeline has it, and may
  // be one if an earlier timeline made the range.
  const isEarlier = (to: number) => schedule === undefined || to <= schedule.anchor
  if (skip !== undefined && (isTick || at === skip.from || at === skip.to || isEarlier(skip.to)))
    return explainSkip(skip)
  if (schedule === undefined || line === undefined) {
    if (!(await hasTraces(store, id))) refuseMissing(id)
    return {
      status: 'unknown-schedule',
      text: `There is no schedule "${id}" now, and nothing is known of this instant.`,
    }
  }
  return isTick ? explainAbsence(store, schedule, at) : notATick(line.previous(at), line.next(at))
}

function explainSkip({ from, to, count, reason }: SkipRange): Answer {
  const of = count === 1 ? '' : ` (one of ${count} ticks from ${iso(from)} to ${iso(to)})`
  return { status: 'skipped', reason, text: `Skipped: ${REASONS[reason]}${of}.` }
}

/** The store has no record of this tick, or none yet. */
async function explainAbsence(store: Store, schedule: Schedule, at: number): Promise<Answer> {
  const { cursor, createdAt, anchor, pausedAt, nextAt, definition } = schedule
  if (at <= cursor) {
    if (at <= createdAt) {
      return { status: 'before-creation', text: `The schedule was created later, at ${iso(createdAt)}.` }
    }
    if (at <= anchor) {
      return { status: 'before-creation', text: `The schedule has had this timeline only since ${iso(anchor)}.` }
    }
    return { status: 'forgotten', text: 'It was recorded and has ended; its history is no longer kept.' }
  }
  if (nextAt === undefined) return explainFinished(schedule)
  const now = await store.now()
  if (pausedAt !== undefined) return explainPaused(schedule, pausedAt, at > now)
  const kept = await obstacles(store, definition.target)
  if (at > now) return { status: 'upcoming', text: [`It comes at ${iso(at)}.`, ...kept].join(' ') }
  const live = (await store.instances.list()).some(({ expiresAt }) => expiresAt >= now)
  const text = live
    ? 'It is due and will be recorded with the next step of any ticker.'
    : 'It is due, and no live instance records ticks: start your app, or belfry serve, on this store.'
  return { status: 'due', text: [text, ...kept].join(' ') }
}

function explainFinished({ definition, cursor, finishedAt }: Schedule): Answer {
  const { times, onFinish } = definition
  const all = times === undefined ? 'all its ticks' : times === 1 ? 'its one tick' : `all its ${times} ticks`
  const isRemoved = onFinish === 'remove' && definition.app === undefined
  const then = isRemoved
    ? 'It is removed when its history is, which is 7 days after by default.'
    : 'It stays until it is removed.'
  return {
    status: 'finished',
    text: `The schedule has given ${all}, the last at ${iso(cursor)}, and is finished since ${iso(finishedAt)}: it has no tick left to give. ${then}`,
  }
}

function explainPaused({ pauseNote, id }: Schedule, pausedAt: number, isUpcoming: boolean): Answer {
  const note = pauseNote === undefined ? '' : ` (${pauseNote})`
  const then = isUpcoming
    ? `This tick comes only if it is resumed before: belfry resume "${id}".`
    : 'This tick is due, and is skipped as paused when the schedule is resumed.'
  return { status: 'paused', text: `The schedule is paused since ${iso(pausedAt)}${note}. ${then}` }
}

function notATick(previous: number | undefined, next: number | undefined): Answer {
  const around = [
    ...(previous === undefined ? [] : [`the one before is ${iso(previous)}`]),
    ...(next === undefined ? [] : [`the one after is ${iso(next)}`]),
  ]
  return {
    status: 'not-a-tick',
    text: `The schedule has no tick at that instant${around.length === 0 ? '' : `: ${around.join(', ')}`}.`,
  }
}
