/**
 * Finds problems of an installation, present and coming ones, and names a fix for each. The cost does not grow with the
 * store, because each check reads at most a thousand schedules or runs.
 */
import type { Clock } from '../../core/clock.js'
import type { Check, Finding } from '../../core/diagnosis.js'
import { BelfryError } from '../../core/errors.js'
import type { Instance } from '../../core/instances/instance.js'
import type { Run, Target } from '../../core/runs/run.js'
import type { Frozen, Store, TargetBacklog } from '../../core/store.js'
import { isoText } from '../../time/instant.js'
import { undeclaredSchedules } from '../schedules/undeclared.js'
import { OUTAGE_ADVICE, type UnreachableSink, unreachableSinks } from '../sinks/unreachable-sinks.js'
import { lastHour } from './last-hour.js'
import { lostWrites } from './lost-writes.js'
import { MAX_LOOKED, MOST_DUE } from './stats.js'
import { type Demand, jobs, sinks } from './unserved.js'

/** How many schedules or runs one check reads. */
const MAX_READ = 1_000
/** Skew below this is ignored. */
const SKEW_MS = 2_000
/** For an instance's clock at its join, smaller skew is ignored: the difference includes the time of the call. */
const JOIN_SKEW_MS = 10_000
const LATE_MS = 10_000
const MAX_NAMED = 5

interface Scene extends Demand {
  readonly store: Store
  readonly clock: Clock
  readonly now: number
  readonly live: readonly Instance[]
  readonly servedJobs: ReadonlySet<string>
  readonly servedSinks: ReadonlySet<string>
  readonly frozen: Frozen | undefined
  readonly backlog: readonly TargetBacklog[]
  readonly outages: readonly UnreachableSink[]
}

export async function doctor(store: Store, clock: Clock): Promise<readonly Check[]> {
  const own = (await store.diagnose?.()) ?? []
  try {
    return [...own, ...(await checks(store, clock))]
  } catch (error) {
    // A damaged store cannot be read, and its own checks have found why.
    const isDamaged = error instanceof BelfryError && error.code === 'STORE_INVALID'
    if (isDamaged && own.some(({ findings }) => findings.length > 0)) return own
    throw error
  }
}

async function checks(store: Store, clock: Clock): Promise<readonly Check[]> {
  const [instances, frozen, { items: schedules }, { items: unstarted }, backlog, outages] = await Promise.all([
    store.instances.list(),
    store.frozen(),
    store.schedules.list({ limit: MAX_READ }),
    store.runs.list({ states: ['waiting', 'ready'], limit: MAX_READ, look: MAX_LOOKED }),
    store.runs.backlog(MOST_DUE),
    unreachableSinks(store),
  ])
  const now = await store.now()
  const live = instances.filter(({ expiresAt }) => expiresAt >= now)
  const servedJobs = new Set(live.flatMap(({ jobs: own }) => own.map(({ name }) => name)))
  const servedSinks = new Set(live.flatMap(({ sinks: own = [] }) => own.map(({ name }) => name)))
  const known = { store, clock, now, live, schedules, unstarted, servedJobs, servedSinks, frozen }
  const scene: Scene = { ...known, backlog: backlog.targets, outages }
  return [
    takingPart(scene),
    await clocks(scene),
    zones(scene),
    await jobs(scene, servedJobs, store, MAX_READ),
    sinks(scene, servedSinks, outageFindings(scene)),
    await keys(scene),
    await lostWrites(store),
    lateness(scene),
    ...(await lastHour({ ...scene, backlog: frozen === undefined ? servedBacklog(scene) : [] })),
    await declared(store),
  ]
}

function takingPart({ live, schedules, frozen, now }: Scene): Check {
  const findings: Finding[] = []
  if (live.length === 0 && schedules.some(({ dueAt }) => dueAt !== undefined)) {
    findings.push({
      what: 'nobody takes part: no tick is recorded and nothing runs',
      fix: 'start your app, or belfry serve, on this store',
    })
  }
  if (frozen !== undefined) {
    const note = frozen.note === undefined ? '' : ` (${frozen.note})`
    findings.push({ what: `nothing starts: frozen ${lengthOf(now - frozen.at)} ago${note}`, fix: 'belfry thaw' })
  }
  return { name: 'instances', about: `${live.length} live`, findings }
}

/** Compares the store's clock with this process's clock now, and with each instance's clock at its join. */
async function clocks({ store, clock, live }: Scene): Promise<Check> {
  const sentAt = clock.monotonic()
  const storeNow = await store.now()
  const roundTripMs = clock.monotonic() - sentAt
  const aheadMs = clock.now() - roundTripMs / 2 - storeNow
  const fix = 'let NTP set the clock there; ticks go by the store’s clock, so none is lost'
  const findings: Finding[] = []
  if (Math.abs(aheadMs) > SKEW_MS + roundTripMs) {
    findings.push({ what: `the clock of the process that looks is ${aside(aheadMs)} the store's`, fix })
  }
  for (const { id, host, clockAt, joinedAt } of live) {
    if (clockAt === undefined || Math.abs(clockAt - joinedAt) <= JOIN_SKEW_MS) continue
    const what = `the clock of instance ${id} on ${host} was ${aside(clockAt - joinedAt)} the store's when it joined`
    findings.push({ what, fix })
  }
  return { name: 'clocks', about: `ours is ${Math.round(aheadMs)} ms ahead of the store's`, findings }
}

function zones({ live }: Scene): Check {
  const versions = new Map<string, string[]>()
  for (const { zoneData, host, pid } of live) {
    versions.set(zoneData, [...(versions.get(zoneData) ?? []), `${host}:${pid}`])
  }
  const known = [...versions].map(([version, who]) => `${version} on ${listed(who)}`)
  const findings =
    versions.size < 2
      ? []
      : [
          {
            what: `zone data differ: ${known.join('; ')}. Ticks in zones that changed depend on who plans them`,
            fix: 'run the same Node release everywhere',
          },
        ]
  return { name: 'zones', about: known.length === 0 ? 'nobody to ask' : [...versions.keys()].join(' and '), findings }
}

/**
 * Finds keys with waiting runs and no holder. Freeing a key and handing it on are one step, so a key that is found
 * twice in this state is stuck.
 */
async function keys({ store, now }: Scene): Promise<Check> {
  const { items } = await store.runs.list({ states: ['waiting'], waitsFor: 'key', limit: MAX_READ, look: MAX_LOOKED })
  const waiters = new Map<string, Run>()
  for (const run of items) if (run.key !== undefined && run.readyAt <= now) waiters.set(run.key.name, run)
  const findings: Finding[] = []
  for (const [name, run] of waiters) {
    if ((await store.leases.inspect(name)).length > 0) continue
    const again = await store.runs.get(run.id)
    if (again?.state !== 'waiting' || again.waitsFor !== 'key' || (await store.leases.inspect(name)).length > 0)
      continue
    findings.push({
      what: `run ${run.id} waits for the key "${name}", which nobody holds`,
      fix: `a live instance repairs it within seconds; if it stays: belfry locks reset "${name}"`,
    })
  }
  return { name: 'keys', about: `${waiters.size} keys have waiters`, findings }
}

/** The fix names the sink only: neither more instances nor more concurrency would help. */
function outageFindings({ now, outages, backlog }: Scene): Finding[] {
  return outages.map((outage) => {
    const { sink, since, error, instances } = outage
    const waiting = backlog.filter(({ target }) => 'sink' in target && target.sink === sink)
    const length = lengthOf(now - since.getTime())
    return {
      what: `the sink "${sink}" is unreachable since ${isoText(since.getTime())} (${length}), from ${listed(instances)}: ${error}; ${dueOf(waiting)} due for it`,
      fix: `bring it back, or correct its address and credentials. ${OUTAGE_ADVICE}`,
    }
  })
}

function lateness(scene: Scene): Check {
  const { now, live, schedules, frozen } = scene
  const findings: Finding[] = []
  const late = schedules.filter(({ dueAt }) => dueAt !== undefined && now - dueAt > LATE_MS)
  const tickMs = Math.max(0, ...late.map(({ dueAt = now }) => now - dueAt))
  if (late.length > 0) {
    findings.push({
      what: `ticks are recorded ${lengthOf(tickMs)} late, for example of "${late[0]?.id}"`,
      fix:
        live.length === 0
          ? 'start an instance with the role tick'
          : 'add instances, or look at how long the store takes',
    })
  }
  const waiting = servedBacklog(scene)
  const runMs = Math.max(0, ...waiting.map(({ oldestReadyAt }) => now - oldestReadyAt))
  if (runMs > LATE_MS && frozen === undefined) {
    const [oldest] = [...waiting].sort((one, other) => one.oldestReadyAt - other.oldestReadyAt)
    const what = `runs start ${lengthOf(runMs)} late: ${dueOf(waiting)} due, the oldest for ${nameOf(oldest?.target)}, and the live instances that serve it have no free slot`
    findings.push({ what, fix: 'add instances, or raise their concurrency' })
  }
  return { name: 'lateness', about: `ticks ${lengthOf(tickMs)}, runs ${lengthOf(runMs)}`, findings }
}

/** What waits although live instances serve it. The checks of jobs and sinks name the rest. */
function servedBacklog({ backlog, servedJobs, servedSinks, outages }: Scene): readonly TargetBacklog[] {
  const down = new Set(outages.map(({ sink }) => sink))
  const isServed = (target: Target) =>
    'job' in target ? servedJobs.has(target.job) : servedSinks.has(target.sink) && !down.has(target.sink)
  return backlog.filter(({ target }) => isServed(target))
}

function nameOf(target: Target | undefined): string {
  if (target === undefined) return 'nothing'
  return 'job' in target ? `the job "${target.job}"` : `the sink "${target.sink}"`
}

async function declared(store: Store): Promise<Check> {
  const ids = await undeclaredSchedules(store)
  const findings = ids.map((id) => ({
    what: `the schedule "${id}" was declared in code before, and no live instance declares it now: it goes on firing`,
    fix: `belfry rm "${id}"; with an \`app\`, Belfry removes such schedules`,
  }))
  return { name: 'declarations', about: `${ids.length} schedules of former code`, findings }
}

function dueOf(backlog: readonly TargetBacklog[]): string {
  const count = backlog.reduce((sum, { due }) => sum + due, 0)
  if (backlog.some(({ more }) => more)) return `${count} or more are`
  return count === 1 ? '1 is' : `${count} are`
}

function aside(ms: number): string {
  return `${lengthOf(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'}`
}

function lengthOf(ms: number): string {
  if (ms < 10_000) return `${Math.round(ms)} ms`
  return ms < 600_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMED
  return more > 0 ? `${names.slice(0, MAX_NAMED).join(', ')} and ${more} more` : names.join(', ')
}
