import type { KeyRule } from '../../core/runs/key.js'
import type { Store } from '../../core/store.js'

/** A job that an instance runs, or ran in the past. */
export interface KnownJob {
  readonly name: string
  readonly exclusive?: KeyRule
  /** The live instances that run it. */
  readonly instances: readonly string[]
}

/** All known jobs, in order of name. */
export async function knownJobs(store: Store): Promise<readonly KnownJob[]> {
  const [jobs, instances, now] = await Promise.all([store.instances.jobs(), store.instances.list(), store.now()])
  const runners = new Map<string, string[]>()
  for (const { id, expiresAt, jobs: own } of instances) {
    if (expiresAt < now) continue
    for (const { name } of own) runners.set(name, [...(runners.get(name) ?? []), id])
  }
  return jobs
    .map((job) => ({ ...job, instances: runners.get(job.name) ?? [] }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}
