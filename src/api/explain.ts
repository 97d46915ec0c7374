/** Answers "why did it not fire at 09:00?", from what the store has recorded. */
import type { SkipReason } from '../core/policies.js'
import type { Run } from '../core/run.js'
import type { Schedule } from '../core/schedule.js'
import { scheduleTimeline } from '../core/schedule-timeline.js'
import type { Store } from '../core/store.js'
import type { Catalogue } from './catalogue.js'

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
    /** It was recorded, and its history is gone by now. */
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

export async function explain(store: Store, catalogue: Catalogue, id: string, at: number): Promise<Explanation> {
  const schedule = await store.schedules.get(id)
  const answer =
    schedule === undefined
      ? { status: 'unknown-schedule' as const, text: `There is no schedule "${id}" now.` }
      : await explainTick(store, catalogue, schedule, at)
  return { at: new Date(at), ...answer }
}

async function explainTick(store: Store, catalogue: Catalogue, schedule: Schedule, at: number): Promise<Answer> {
  const run = (await store.runs.list({ schedule: schedule.id, tick: at, limit: 10 })).items.find(
    ({ origin }) => origin === 'tick',
  )
  if (run !== undefined) return explainRun(store, catalogue, run)
  const [skip] = await store.schedules.skips(schedule.id, at, at, 1)
  if (skip !== undefined) {
    const of = skip.count === 1 ? '' : ` (one of ${skip.count} ticks from ${iso(skip.from)} to ${iso(skip.to)})`
    return { status: 'skipped', reason: skip.reason, text: `Skipped: ${REASONS[skip.reason]}${of}.` }
  }
  const line = scheduleTimeline({ ...schedule.definition, anchor: schedule.anchor })
  if (line.next(at - 1) !== at) return notATick(line.previous(at), line.next(at))
  return explainAbsence(store, catalogue, schedule, at)
}

/** A tick of the timeline that has left no trace, or none yet. */
async function explainAbsence(store: Store, catalogue: Catalogue, schedule: Schedule, at: number): Promise<Answer> {
  if (at <= schedule.cursor) {
    if (at <= schedule.createdAt) {
      return { status: 'before-creation', text: `The schedule was created later, at ${iso(schedule.createdAt)}.` }
    }
    return { status: 'forgotten', text: 'It was recorded and has ended; its history is no longer kept.' }
  }
  const now = await store.now()
  const obstacles = await findObstacles(store, catalogue, schedule)
  const when = at > now ? `It comes at ${iso(at)}` : 'It is due and will be recorded with the next step of any ticker'
  return { status: at > now ? 'upcoming' : 'due', text: [`${when}.`, ...obstacles].join(' ') }
}

async function findObstacles(store: Store, catalogue: Catalogue, schedule: Schedule): Promise<string[]> {
  const note = schedule.pauseNote === undefined ? '' : `: ${schedule.pauseNote}`
  const paused =
    schedule.pausedAt === undefined ? [] : [`The schedule is paused since ${iso(schedule.pausedAt)}${note}.`]
  const ended = schedule.nextAt === undefined ? ['The schedule has no tick left to give.'] : []
  return [...paused, ...ended, ...(await runObstacles(store, catalogue, schedule.definition.target))]
}

/** What keeps runs of a target from starting. */
async function runObstacles(store: Store, catalogue: Catalogue, target: Run['target']): Promise<string[]> {
  const frozen = await store.frozen()
  const ice =
    frozen === undefined
      ? []
      : [
          `Nothing starts: the store is frozen since ${iso(frozen.at)}${frozen.note === undefined ? '' : ` (${frozen.note})`}.`,
        ]
  if (!('job' in target)) return ice
  const instances = await store.instances.list()
  const now = await store.now()
  const served = instances.some(
    (instance) => instance.expiresAt >= now && instance.jobs.some(({ name }) => name === target.job),
  )
  if (served || catalogue.jobs.has(target.job)) return ice
  return [...ice, `No live instance runs the job "${target.job}": it waits until one does.`]
}

async function explainRun(store: Store, catalogue: Catalogue, run: Run): Promise<Answer> {
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
        text: `It is running since ${iso(run.startedAt)} on ${run.instance}, attempt ${run.attempt}.`,
      }
    default: {
      const obstacles = await runObstacles(store, catalogue, run.target)
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
  return instant === undefined ? 'an unknown time' : new Date(instant).toISOString().replace('.000Z', 'Z')
}
