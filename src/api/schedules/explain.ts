/** Answers "why did it not fire at 09:00?" from the store's records. */

import type { SkipReason } from '../../core/policies.js'
import type { Run } from '../../core/runs/run.js'
import type { SkipRange } from '../../core/schedules/plan.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import { scheduleTimeline } from '../../core/schedules/schedule-timeline.js'
import type { Store } from '../../core/store.js'
import { isoText } from '../../time/instant.js'
import { outageText, unreachableSinks } from '../sinks/unreachable-sinks.js'

export interface Explanation {
  readonly at: Date
  readonly status:
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
    /** It was recorded, but its details have been pruned. */
    | 'forgotten'
  readonly reason?: SkipReason
  readonly run?: Run
  /** The answer in a sentence or two. */
  readonly text: string
}

const REASONS: Readonly<Record<SkipReason, string>> = {
  missed: 'nobody was up to record it in time, and the missed policy dropped it',
  deadline: 'it could not start before its deadline',
  overlap: 'an earlier run of the schedule was unfinished',
  busy: 'its exclusive key was held by another run',
  paused: 'the schedule was paused',
  replaced: 'the schedule was changed before it started',
  removed: 'the schedule was removed before it started',
}

type Answer = Omit<Explanation, 'at'>

export async function explain(store: Store, id: string, at: number): Promise<Explanation> {
  return { at: new Date(at), ...(await explainTick(store, id, at)) }
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

async function explainTick(store: Store, id: string, at: number): Promise<Answer> {
  const { items } = await store.runs.list({ schedule: id, tick: at, limit: 10 })
  const run = items.find(({ origin }) => origin === 'tick')
  if (run !== undefined) return explainRun(store, run)
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
    return { status: 'unknown-schedule', text: `There is no schedule "${id}" now.` }
  }
  return isTick ? explainAbsence(store, schedule, at) : notATick(line.previous(at), line.next(at))
}

function explainSkip({ from, to, count, reason }: SkipRange): Answer {
  const of = count === 1 ? '' : ` (one of ${count} ticks from ${iso(from)} to ${iso(to)})`
  return { status: 'skipped', reason, text: `Skipped: ${REASONS[reason]}${of}.` }
}

/** The store has no record of this tick, or none yet. */
async function explainAbsence(store: Store, schedule: Schedule, at: number): Promise<Answer> {
  if (at <= schedule.cursor) {
    if (at <= schedule.createdAt) {
      return { status: 'before-creation', text: `The schedule was created later, at ${iso(schedule.createdAt)}.` }
    }
    if (at <= schedule.anchor) {
      return {
        status: 'before-creation',
        text: `The schedule has had this timeline only since ${iso(schedule.anchor)}.`,
      }
    }
    return { status: 'forgotten', text: 'It was recorded and has ended; its history is no longer kept.' }
  }
  const now = await store.now()
  const obstacles = await findObstacles(store, schedule)
  const when = at > now ? `It comes at ${iso(at)}` : 'It is due and will be recorded with the next step of any ticker'
  return { status: at > now ? 'upcoming' : 'due', text: [`${when}.`, ...obstacles].join(' ') }
}

async function findObstacles(store: Store, schedule: Schedule): Promise<string[]> {
  const note = schedule.pauseNote === undefined ? '' : `: ${schedule.pauseNote}`
  const paused =
    schedule.pausedAt === undefined ? [] : [`The schedule is paused since ${iso(schedule.pausedAt)}${note}.`]
  const ended = schedule.nextAt === undefined ? ['The schedule has no tick left to give.'] : []
  return [...paused, ...ended, ...(await runObstacles(store, schedule.definition.target))]
}

/** The reasons that keep runs of a target from starting. */
async function runObstacles(store: Store, target: Run['target']): Promise<string[]> {
  const frozen = await store.frozen()
  const ice =
    frozen === undefined
      ? []
      : [
          `Nothing starts: the store is frozen since ${iso(frozen.at)}${frozen.note === undefined ? '' : ` (${frozen.note})`}.`,
        ]
  const instances = await store.instances.list()
  const now = await store.now()
  const live = instances.filter(({ expiresAt }) => expiresAt >= now)
  const isServed =
    'job' in target
      ? live.some(({ jobs }) => jobs.some(({ name }) => name === target.job))
      : live.some(({ sinks = [] }) => sinks.some(({ name }) => name === target.sink))
  const outage = 'sink' in target ? await outageOf(store, target.sink) : []
  if (isServed) return [...ice, ...outage]
  const who = 'job' in target ? `runs the job "${target.job}"` : `delivers to the sink "${target.sink}"`
  return [...ice, `No live instance ${who}: it waits until one does.`]
}

async function outageOf(store: Store, name: string): Promise<string[]> {
  return (await unreachableSinks(store)).filter(({ sink }) => sink === name).map(outageText)
}

async function explainRun(store: Store, run: Run): Promise<Answer> {
  switch (run.state) {
    case 'succeeded':
      return {
        status: 'ran',
        run,
        text: `It ran: started ${iso(run.startedAt)}, ended ${iso(run.finishedAt)}, attempt ${run.attempt}.`,
      }
    case 'failed':
      return {
        status: 'failed',
        run,
        text: `It ran and failed after ${run.attempt} attempts: ${run.error?.message ?? 'no error was recorded'}.`,
      }
    case 'cancelled':
      return { status: 'cancelled', run, text: `It was cancelled at ${iso(run.finishedAt)}.` }
    case 'skipped': {
      const reason = run.reason ?? 'missed'
      return { status: 'skipped', reason, run, text: `Skipped: ${REASONS[reason]}.` }
    }
    case 'running':
      return {
        status: 'running',
        run,
        text: [
          `It is running since ${iso(run.startedAt)} on ${run.instance}, attempt ${run.attempt}.`,
          ...('sink' in run.target ? await outageOf(store, run.target.sink) : []),
        ].join(' '),
      }
    default: {
      const obstacles = await runObstacles(store, run.target)
      return { status: 'waiting', run, text: [waitingText(run), ...obstacles].join(' ') }
    }
  }
}

function waitingText(run: Run): string {
  if (run.waitsFor === 'stamp')
    return 'It is recorded and waits for an instance with the job’s code to compute its exclusive key.'
  if (run.waitsFor === 'overlap') return 'It is recorded and waits for an earlier run of the schedule to end.'
  if (run.waitsFor === 'key') return `It is recorded and waits for its exclusive key "${run.key?.name}".`
  if (run.attempt > 0)
    return `Attempt ${run.attempt} ended without success; the next may start from ${iso(run.readyAt)}.`
  return `It is recorded and may start from ${iso(run.readyAt)}.`
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

function iso(instant: number | undefined): string {
  return instant === undefined ? 'an unknown time' : isoText(instant)
}
