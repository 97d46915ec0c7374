import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import type { Database } from '../connection/database.js'
import { instanceCodec, toJob } from './instance-codec.js'

const LIST = `select ${instanceCodec.select('i')} from belfry.instances i where not i.dead order by i.seq`

export async function listInstances(db: Database): Promise<Instance[]> {
  return (await db.read(LIST)).map((row) => instanceCodec.read(row))
}

export async function listJobs(db: Database): Promise<JobInfo[]> {
  return (await db.read('select info from belfry.jobs order by seq')).map(toJob)
}
