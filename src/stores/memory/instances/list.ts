import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import type { MemoryState } from '../schema/state.js'

export function listInstances(state: MemoryState): Instance[] {
  return [...state.instances.values()]
    .filter(({ dead }) => !dead)
    .map(({ info, joinedAt, beatAt, expiresAt }) => ({ ...info, joinedAt, beatAt, expiresAt }))
}

export function listJobs(state: MemoryState): JobInfo[] {
  return [...state.jobs.values()]
}
