import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import { type Nothing, statement } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import { type InstanceRow, type JobRow, toInstance, toJob } from './instance-codec.js'
import source from './list.sql'

const selectInstances = statement<Nothing, InstanceRow>(source, 'listInstances')
const selectJobs = statement<Nothing, JobRow>(source, 'listJobs')

export function listInstances({ db }: Snapshot): Instance[] {
  return db.all(selectInstances, {}).map(toInstance)
}

export function listJobs({ db }: Snapshot): JobInfo[] {
  return db.all(selectJobs, {}).map(toJob)
}
