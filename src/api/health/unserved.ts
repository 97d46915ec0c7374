/** The doctor's checks of jobs and sinks: schedules and runs whose target no live instance serves. */
import type { Check, Finding } from '../../core/diagnosis.js'
import type { Run, Target } from '../../core/runs/run.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import type { Store } from '../../core/store.js'

export interface Demand {
  readonly schedules: readonly Schedule[]
  /** The newest unstarted runs. They reveal unserved targets of schedules beyond the first thousand. */
  readonly unstarted: readonly Run[]
}

interface Kind {
  /** The target's name, if it is of this kind. */
  readonly nameOf: (target: Target) => string | undefined
  readonly problem: (name: string) => string
  readonly flag: '--job' | '--to'
}

const JOB: Kind = {
  nameOf: (target) => ('job' in target ? target.job : undefined),
  problem: (name) => `nobody runs the job "${name}"`,
  flag: '--job',
}

const SINK: Kind = {
  nameOf: (target) => ('sink' in target ? target.sink : undefined),
  problem: (name) => `nobody delivers to the sink "${name}"`,
  flag: '--to',
}

/** How many schedules a store without an index of jobs looks through, for all jobs together. */
const MAX_LOOKED = 100_000

/**
 * Finds jobs that no live instance runs, although a schedule or run needs them. At most `most` further known jobs are
 * looked up, for schedules that `demand` does not contain.
 */
export async function jobs(demand: Demand, served: ReadonlySet<string>, store: Store, most: number): Promise<Check> {
  const found = unserved(demand, served, JOB)
  const once = (await store.instances.jobs()).filter(({ name }) => !served.has(name) && !found.has(name))
  const asked = once.slice(0, most)
  const look = Math.ceil(MAX_LOOKED / asked.length)
  for (const { name } of asked) {
    const [schedule] = (await store.schedules.list({ job: name, state: 'active', limit: 1, look })).items
    if (schedule !== undefined) found.set(name, neededBy(schedule, name, JOB))
  }
  return { name: 'jobs', about: `${served.size} jobs have somebody who runs them`, findings: [...found.values()] }
}

export function sinks(demand: Demand, served: ReadonlySet<string>, outages: readonly Finding[]): Check {
  const findings = [...unserved(demand, served, SINK).values(), ...outages]
  const about = `${served.size} sinks have somebody who delivers to them`
  return {
    name: 'sinks',
    about: outages.length === 0 ? about : `${about}, ${outages.length} cannot be reached`,
    findings,
  }
}

/** One finding for each job or sink that is needed and not served. */
function unserved({ schedules, unstarted }: Demand, served: ReadonlySet<string>, kind: Kind): Map<string, Finding> {
  const found = new Map<string, Finding>()
  const isNew = (name: string | undefined): name is string =>
    name !== undefined && !served.has(name) && !found.has(name)
  for (const schedule of schedules) {
    const { definition, finishedAt, pausedAt } = schedule
    const name = kind.nameOf(definition.target)
    const isActive = finishedAt === undefined && pausedAt === undefined
    if (isActive && isNew(name)) found.set(name, neededBy(schedule, name, kind))
  }
  for (const { id, target, schedule } of unstarted) {
    const name = kind.nameOf(target)
    if (!isNew(name)) continue
    found.set(name, {
      what: `${kind.problem(name)}, and run ${id}${schedule === undefined ? '' : ` of the schedule "${schedule}"`} waits`,
      fix: `start an instance that has it, or: belfry cancel ${kind.flag} "${name}"`,
    })
  }
  return found
}

function neededBy({ id }: Schedule, name: string, { problem }: Kind): Finding {
  return {
    what: `${problem(name)}, which the schedule "${id}" needs`,
    fix: `start an instance that has it, or: belfry pause "${id}"`,
  }
}
