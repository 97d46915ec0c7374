/**
 * The doctor's checks of what happened in the last hour: jobs and sinks that fail, schedules that have never succeeded,
 * backlogs that grow, and keys that are held for far longer than usual. They read the newest runs, up to a bound.
 */

import type { Check, Finding } from '../../core/diagnosis.js'
import { quote } from '../../core/errors.js'
import type { Lease } from '../../core/locks/lease.js'
import type { Run, Target } from '../../core/runs/run.js'
import type { Store, TargetBacklog } from '../../core/store.js'

const MAX_READ = 1_000
const MAX_LOOKED = 10_000
const MAX_NAMED = 20
const MAX_OF_SCHEDULE = 200
const HOUR_MS = 3_600_000
const GROWTH_MS = 600_000
/** A backlog that grows by less than this is ignored. */
const GROWTH = 1.2
const LEAST_BACKLOG = 20
/** A key is held for too long after this many times the usual duration of its job, and at least a minute. */
const TOO_LONG = 10
const LEAST_HELD_MS = 60_000
const LEAST_DURATIONS = 5

export interface LastHour {
  readonly store: Store
  readonly now: number
  /** The newest runs that have not begun, or are between attempts. */
  readonly unstarted: readonly Run[]
  readonly backlog: readonly TargetBacklog[]
}

export async function lastHour(scene: LastHour): Promise<readonly Check[]> {
  const { store, now } = scene
  const since = now - HOUR_MS
  const [newest, failed, leases] = await Promise.all([
    store.runs.list({ limit: MAX_READ, look: MAX_LOOKED }),
    store.runs.list({ states: ['failed'], limit: MAX_READ, look: MAX_LOOKED }),
    store.leases.list({ limit: MAX_READ }),
  ])
  const runs = [...new Map([...newest.items, ...failed.items].map((run) => [run.id, run])).values()]
  const ended = runs.filter(({ finishedAt = 0 }) => finishedAt >= since)
  const retrying = scene.unstarted.filter(({ failures, error }) => failures > 0 && error !== undefined)
  return [
    failures([...ended, ...retrying]),
    deadLetters(ended),
    await neverSucceeded(store, runs),
    backlogs(scene, newest.items),
    held(leases.items, newest.items, now),
  ]
}

/** Jobs and sinks of which more than half of the runs failed. */
function failures(runs: readonly Run[]): Check {
  const findings: Finding[] = []
  for (const [name, own] of byTarget(runs.filter(isCounted))) {
    const bad = own.filter(({ state }) => state !== 'succeeded')
    const [newest] = bad
    if (newest === undefined || bad.length * 2 <= own.length) continue
    findings.push({
      what: `${name} failed in ${bad.length} of ${own.length} runs of the last hour, last with: ${messageOf(newest)}`,
      fix: `belfry run ${newest.id} shows its attempts; mend the ${kindOf(newest)}, then: ${retryOf(newest)}`,
    })
  }
  return { name: 'failures', about: `${runs.length} runs of the last hour`, findings }
}

/** A history that keeps failures only says nothing about how many runs succeeded. */
function isCounted({ state, keep, failures }: Run): boolean {
  return (keep === 'all' && (state === 'succeeded' || state === 'failed')) || (state !== 'failed' && failures > 0)
}

/** Events for sinks that have used up their attempts. */
function deadLetters(ended: readonly Run[]): Check {
  const dead = ended.filter(({ state, target }) => state === 'failed' && 'sink' in target)
  const findings = [...byTarget(dead)].map(([name, own]): Finding => {
    const [newest] = own as [Run]
    return {
      what: `${own.length} events for ${name} failed for good in the last hour, last with: ${messageOf(newest)}`,
      fix: `mend the receiver, then: ${retryOf(newest)}`,
    }
  })
  return { name: 'dead letters', about: `${dead.length} in the last hour`, findings }
}

/** Schedules of whose newest runs none has succeeded. */
async function neverSucceeded(store: Store, runs: readonly Run[]): Promise<Check> {
  const failed = new Map<string, Run>()
  for (const run of runs) {
    const { schedule, state, keep } = run
    if (schedule !== undefined && state === 'failed' && keep === 'all' && !failed.has(schedule))
      failed.set(schedule, run)
  }
  const findings: Finding[] = []
  for (const [id, run] of [...failed].slice(0, MAX_NAMED)) {
    const { items } = await store.runs.list({ schedule: id, limit: MAX_OF_SCHEDULE })
    if (items.some(({ state }) => state === 'succeeded')) continue
    const count = items.filter(({ state }) => state === 'failed').length
    if ((await store.schedules.get(id)) === undefined) continue
    findings.push({
      what: `the schedule ${quote(id)} has never succeeded: ${count} of its newest runs failed, last with: ${messageOf(run)}`,
      fix: `belfry explain ${quote(id)}; belfry pause ${quote(id)} stops it`,
    })
  }
  return { name: 'schedules', about: `${failed.size} with failures were looked at`, findings }
}

/** Backlogs that more runs enter than leave. */
function backlogs({ backlog, now }: LastHour, newest: readonly Run[]): Check {
  const since = now - GROWTH_MS
  const runs = byTarget(newest)
  const findings = backlog.flatMap(({ target, due, more }): Finding[] => {
    const own = runs.get(nameOf(target)) ?? []
    const made = own.filter(({ createdAt }) => createdAt >= since).length
    const ended = own.filter(({ finishedAt = 0 }) => finishedAt >= since).length
    if (due < LEAST_BACKLOG || made <= ended * GROWTH) return []
    const count = more ? `${due} or more` : due
    return [
      {
        what: `the backlog of ${nameOf(target)} grows: ${count} runs are due; of the newest, ${made} came in the last 10 min and ${ended} ended`,
        fix: 'add instances, raise their concurrency, or let schedules skip: overlap, missed, deadline',
      },
    ]
  })
  return { name: 'backlog', about: `${backlog.length} jobs and sinks have due runs`, findings }
}

/** Exclusive keys that a run has held for far longer than runs of its job take. */
function held(leases: readonly Lease[], newest: readonly Run[], now: number): Check {
  const running = new Map(newest.map((run) => [run.id, run]))
  const runs = byTarget(newest)
  const findings = leases.flatMap(({ name, run: id = '', acquiredAt }): Finding[] => {
    const run = running.get(id)
    const usualMs = run && usualDuration(runs.get(nameOf(run.target)) ?? [])
    const heldMs = now - acquiredAt
    if (run === undefined || usualMs === undefined || heldMs < Math.max(usualMs * TOO_LONG, LEAST_HELD_MS)) return []
    const what = `run ${id} has held the key ${quote(name)} for ${minutes(heldMs)}, and 95 % of the runs of ${nameOf(run.target)} take at most ${minutes(usualMs)}`
    return [
      { what, fix: `belfry run ${id} shows it; belfry cancel ${id} ends it, or: belfry locks reset ${quote(name)}` },
    ]
  })
  return { name: 'locks', about: `${leases.length} are held`, findings }
}

function usualDuration(runs: readonly Run[]): number | undefined {
  const took = runs
    .flatMap(({ state, startedAt = 0, finishedAt = 0 }) => (state === 'succeeded' ? [finishedAt - startedAt] : []))
    .sort((one, other) => one - other)
  return took.length < LEAST_DURATIONS ? undefined : took[Math.ceil(took.length * 0.95) - 1]
}

function byTarget(runs: readonly Run[]): Map<string, Run[]> {
  const found = new Map<string, Run[]>()
  for (const run of runs) {
    const name = nameOf(run.target)
    const own = found.get(name)
    if (own === undefined) found.set(name, [run])
    else own.push(run)
  }
  return found
}

function nameOf(target: Target): string {
  return 'job' in target ? `the job ${quote(target.job)}` : `the sink ${quote(target.sink)}`
}

function kindOf({ target }: Run): string {
  return 'job' in target ? 'job' : 'receiver'
}

function retryOf({ target }: Run): string {
  const name = 'job' in target ? `--job ${quote(target.job)}` : `--to ${quote(target.sink)}`
  return `belfry retry ${name} --state failed`
}

const MAX_MESSAGE = 200

function messageOf({ error }: Run): string {
  const message = error?.message ?? 'no error was recorded'
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
}

function minutes(ms: number): string {
  if (ms < 10_000) return `${Math.round(ms)} ms`
  return ms < 600_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`
}
