import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import type { Database } from '../connection/database.js'
import { instanceCodec, jobCodec } from './instance-codec.js'

const LIST = `select ${instanceCodec.select('i')} from belfry.instances i where not i.dead order by i.seq`

export async function listInstances(db: Database): Promise<Instance[]> {
  return (await db.read(LIST)).map(instanceCodec.read)
}

const JOBS = `select ${jobCodec.select('j')} from belfry.jobs j order by j.seq`

export async function listJobs(db: Database): Promise<JobInfo[]> {
  return (await db.read(JOBS)).map((row) => jobCodec.read(row).info)
}
