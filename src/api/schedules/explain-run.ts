/** Explains one run: what happened to it, or what it waits for. docs/operators-day.md lists the cases. */
import { describeHolders } from '../../core/locks/holder.js'
import type { SkipReason } from '../../core/policies.js'
import type { Run } from '../../core/runs/run.js'
import type { Store } from '../../core/store.js'
import { isoText } from '../../time/instant.js'
import { outageText, unreachableSinks } from '../sinks/unreachable-sinks.js'
import type { Explanation } from './explain.js'

export type Answer = Omit<Explanation, 'at'>

/** `own`: no run, holder or process that does not belong to the schedule is named. */
export type Names = 'all' | 'own'

/** How many runs before another one are counted, and how many are looked at for it. */
const MOST_BEFORE = 100
const MAX_LOOKED = 10_000

export const REASONS: Readonly<Record<SkipReason, string>> = {
  missed: 'nobody was up to record it or to start it in time, and the missed policy dropped it',
  deadline: 'it could not start before its deadline',
  overlap: 'an earlier run of the schedule was unfinished',
  busy: 'its exclusive key was held by another run',
  paused: 'the schedule was paused',
  replaced: 'the schedule was changed before it started',
  removed: 'the schedule was removed before it started',
}

export async function explainRun(store: Store, run: Run, names: Names): Promise<Answer> {
  switch (run.state) {
    case 'succeeded': {
      const text = `It ran: started ${iso(run.startedAt)}, ended ${iso(run.finishedAt)}, attempt ${run.attempt}.`
      return { status: 'ran', run, text }
    }
    case 'failed': {
      const attempts = run.attempt === 1 ? 'one attempt' : `${run.attempt} attempts`
      return {
        status: 'failed',
        run,
        text: `It ran and failed after ${attempts}: ${errorOf(run)}. \`belfry retry ${run.id}\` runs it again.`,
      }
    }
    case 'cancelled':
      return { status: 'cancelled', run, text: `It was cancelled at ${iso(run.finishedAt)}.` }
    case 'skipped': {
      const reason = run.reason ?? 'missed'
      return { status: 'skipped', reason, run, text: `Skipped: ${REASONS[reason]}.` }
    }
    case 'running':
      return { status: 'running', run, text: await runningText(store, run, names) }
    default: {
      const sentences = [
        await waitingText(store, run, names),
        ...startLimit(run),
        ...(await obstacles(store, run.target)),
      ]
      return { status: 'waiting', run, text: sentences.join(' ') }
    }
  }
}

async function runningText(store: Store, run: Run, names: Names): Promise<string> {
  const instance = names === 'all' ? (await store.instances.list()).find(({ id }) => id === run.instance) : undefined
  const place = instance === undefined ? '' : ` (${instance.host} pid ${instance.pid})`
  const before = run.attempt > 1 && run.error !== undefined ? [`The attempt before failed: ${errorOf(run)}.`] : []
  const outage = 'sink' in run.target ? await outageOf(store, run.target.sink) : []
  const cancel = run.cancelRequested ? ['It was asked to cancel.'] : []
  const text = `It is running since ${iso(run.startedAt)} on ${run.instance}${place}, attempt ${run.attempt}.`
  return [text, ...before, ...cancel, ...outage].join(' ')
}

async function waitingText(store: Store, run: Run, names: Names): Promise<string> {
  if (run.waitsFor === 'stamp')
    return 'It is recorded and waits for an instance with the job’s code to compute its exclusive key.'
  if (run.waitsFor === 'overlap') return overlapText(store, run)
  if (run.waitsFor === 'key') return keyText(store, run, names)
  if (run.attempt > 0) {
    const what = run.failures > 0 ? `failed: ${errorOf(run)}` : 'was given back: its instance stopped or died'
    return `Attempt ${run.attempt} ${what}. The next attempt may start from ${iso(run.readyAt)}.`
  }
  const now = await store.now()
  if (run.readyAt > now) return `It is recorded and may start from ${iso(run.readyAt)}.`
  // On a Redis Cluster a run is ready while its place in the line of its key is in another shard.
  if (run.key !== undefined && (await store.leases.inspect(run.key.name)).length >= run.key.limit) {
    return keyText(store, run, names)
  }
  return `It is recorded and may start from ${iso(run.readyAt)}.${await queueText(store, run, names)}`
}

/** How many due runs of the same job or sink there are, when this one is late. */
async function queueText(store: Store, { target }: Run, names: Names): Promise<string> {
  if (names === 'own') return ''
  const { targets } = await store.runs.backlog(MOST_BEFORE)
  const own = targets.filter(({ target: other }) => nameOf(other) === nameOf(target))
  const due = own.reduce((sum, each) => sum + each.due, 0)
  if (due < 2) return ''
  const more = own.some((each) => each.more) ? ' or more' : ''
  const kind = 'job' in target ? 'job' : 'sink'
  return ` It waits for a free slot: ${due}${more} runs of the ${kind} "${nameOf(target)}" are due.`
}

async function overlapText(store: Store, { id, schedule = '' }: Run): Promise<string> {
  const query = { schedule, states: ['running', 'ready', 'waiting'], look: MAX_LOOKED } as const
  const { items, next } = await store.runs.list({ ...query, after: id, limit: MOST_BEFORE })
  const text = 'It is recorded and waits for an earlier run of the schedule to end'
  const first = items.find(({ state }) => state === 'running') ?? items.at(-1)
  if (first === undefined) return `${text}.`
  const since = first.state === 'running' ? `is running since ${iso(first.startedAt)}` : 'has not ended'
  return `${text}: run ${first.id} ${since}${before(items.length - 1, next !== undefined)}.`
}

async function keyText(store: Store, { id, key }: Run, names: Names): Promise<string> {
  const name = key?.name ?? ''
  const text = `It is recorded and waits for its exclusive key "${name}"`
  const holders = await store.leases.inspect(name)
  if (holders.length === 0) return `${text}, which is free: it starts soon.`
  if (names === 'own') return `${text}, which is held since ${iso(holders[0]?.acquiredAt)}.`
  const query = { key: name, states: ['ready', 'waiting'], look: MAX_LOOKED } as const
  const { items, next } = await store.runs.list({ ...query, after: id, limit: MOST_BEFORE })
  return `${text}. It is held by ${describeHolders(holders)}${before(items.length, next !== undefined)}.`
}

function before(count: number, more: boolean): string {
  if (count === 0 && !more) return ''
  if (more) return `; ${count} or more others come before it`
  return count === 1 ? '; one other comes before it' : `; ${count} others come before it`
}

function startLimit({ attempt, startBy }: Run): string[] {
  return attempt > 0 || startBy === undefined ? [] : [`It is skipped if it has not started by ${iso(startBy)}.`]
}

/** The reasons that keep runs of a target from starting. */
export async function obstacles(store: Store, target: Run['target']): Promise<string[]> {
  const [frozen, instances, now] = await Promise.all([store.frozen(), store.instances.list(), store.now()])
  const note = frozen?.note === undefined ? '' : ` (${frozen.note})`
  const ice =
    frozen === undefined
      ? []
      : [`Nothing starts: the store is frozen since ${iso(frozen.at)}${note}, until belfry thaw.`]
  const live = instances.filter(({ expiresAt }) => expiresAt >= now)
  const isServed =
    'job' in target
      ? live.some(({ jobs }) => jobs.some(({ name }) => name === target.job))
      : live.some(({ sinks = [] }) => sinks.some(({ name }) => name === target.sink))
  const outage = 'sink' in target ? await outageOf(store, target.sink) : []
  if (isServed) return [...ice, ...outage]
  const who = 'job' in target ? `runs the job "${target.job}"` : `delivers to the sink "${target.sink}"`
  return [...ice, ...outage, `No live instance ${who}: it waits until one does.`]
}

async function outageOf(store: Store, name: string): Promise<string[]> {
  return (await unreachableSinks(store)).filter(({ sink }) => sink === name).map(outageText)
}

function errorOf({ error }: Run): string {
  return error?.message ?? 'no error was recorded'
}

function nameOf(target: Run['target']): string {
  return 'job' in target ? target.job : target.sink
}

export function iso(instant: number | undefined): string {
  return instant === undefined ? 'an unknown time' : isoText(instant)
}
