/** Instances, jobs and declarations as rows. */
import type { AttemptRef, Instance, InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import { runNumber } from '../../../core/runs/run-id.js'
import type { DeclaredSet } from '../../../core/store.js'
import { columnsOf, integer, json, listOf, optional, type RowCodec, text } from '../schema/sql-function.js'

const instances = columnsOf({ info: json<InstanceInfo>(), joinedAt: integer, beatAt: integer, expiresAt: integer })

export const instanceCodec: RowCodec<Instance> = {
  select: instances.select,
  read: (row) => {
    const { info, ...instants } = instances.read(row)
    return { ...info, ...instants }
  },
}

export const declarationCodec: RowCodec<DeclaredSet> = columnsOf({
  hash: text,
  release: optional(text),
  schedules: json<string[]>(),
  firstSeenAt: integer,
  aliveAt: integer,
})

export const jobCodec = columnsOf({ info: json<JobInfo>() })

/** Rows of `belfry.job_declaration`. */
export const jobRows = listOf('job_declaration', (job: JobInfo) => ({ name: job.name, info: JSON.stringify(job) }))

/** Rows of `belfry.attempt`. */
export const attemptRows = listOf('attempt', ({ run, token }: AttemptRef) => ({ run: runNumber(run), token }))
