import type { Instance, InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import { type Nothing, rows } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './list.sql'

type InstanceRow = { info: string; joined_at: number; beat_at: number; expires_at: number }
const selectInstances = rows<Nothing, InstanceRow>(source, 'listInstances')
const selectJobs = rows<Nothing, { info: string }>(source, 'listJobs')

export function listInstances(snapshot: Snapshot): Instance[] {
  return selectInstances(snapshot, {}).map(({ info, joined_at, beat_at, expires_at }) => {
    return { ...(JSON.parse(info) as InstanceInfo), joinedAt: joined_at, beatAt: beat_at, expiresAt: expires_at }
  })
}

export function listJobs(snapshot: Snapshot): JobInfo[] {
  return selectJobs(snapshot, {}).map(({ info }) => JSON.parse(info) as JobInfo)
}
