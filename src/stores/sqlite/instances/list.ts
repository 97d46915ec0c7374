import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import type { Connection } from '../connection/connection.js'
import { type Nothing, statement } from '../connection/statements.js'
import { type InstanceRow, type JobRow, toInstance, toJob } from './instance-codec.js'
import source from './list.sql'

const selectInstances = statement<Nothing, InstanceRow>(source, 'listInstances')
const selectJobs = statement<Nothing, JobRow>(source, 'listJobs')

export function listInstances(db: Connection): Instance[] {
  return db.all(selectInstances, {}).map(toInstance)
}

export function listJobs(db: Connection): JobInfo[] {
  return db.all(selectJobs, {}).map(toJob)
}
