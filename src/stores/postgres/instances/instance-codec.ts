/** Instances, jobs and declarations as rows. */
import type { AttemptRef, Instance, InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import type { DeclaredSet } from '../../../core/store.js'
import type { Row } from '../connection/database.js'
import { listOf, type RowCodec } from '../schema/sql-function.js'

export const instanceCodec: RowCodec<Instance> = {
  select: (alias) => `${alias}.info, ${alias}.joined_at, ${alias}.beat_at, ${alias}.expires_at`,
  read: (row, from) => {
    const [info, joinedAt, beatAt, expiresAt] = row.slice(from)
    return {
      ...(JSON.parse(info ?? '{}') as InstanceInfo),
      ...{ joinedAt: Number(joinedAt), beatAt: Number(beatAt), expiresAt: Number(expiresAt) },
    }
  },
}

export const declarationCodec: RowCodec<DeclaredSet> = {
  select: (alias) => `${alias}.hash, ${alias}.release, ${alias}.schedules, ${alias}.first_seen_at, ${alias}.alive_at`,
  read: (row, from) => {
    const [hash, release, schedules, firstSeenAt, aliveAt] = row.slice(from)
    return {
      ...{ hash: hash ?? '', schedules: JSON.parse(schedules ?? '[]') as string[] },
      ...{ firstSeenAt: Number(firstSeenAt), aliveAt: Number(aliveAt) },
      ...(release === null || release === undefined ? {} : { release }),
    }
  },
}

export const toJob = ([info]: Row): JobInfo => JSON.parse(info ?? '{}') as JobInfo

/** Jobs, as `belfry.job_declaration`. */
export const jobRows = listOf('job_declaration', (job: JobInfo) => ({ name: job.name, info: JSON.stringify(job) }))

/** Attempts, as `belfry.attempt`. */
export const attemptRows = listOf('attempt', ({ run, token }: AttemptRef) => ({ run, token }))
