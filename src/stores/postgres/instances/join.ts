import type { InstanceInfo } from '../../../core/instances/instance.js'
import type { Database } from '../connection/database.js'
import { call, integer, milliseconds, optional, sqlFunction, text } from '../schema/sql-function.js'
import { jobRows } from './instance-codec.js'
import source from './join.sql'

const join = sqlFunction({
  name: 'join_instance',
  source,
  takes: {
    instanceId: text,
    instanceInfo: text,
    appName: optional(text),
    declarationsHash: optional(text),
    leaseMs: milliseconds,
    jobDeclarations: jobRows,
    proofNumber: optional(integer),
  },
  gives: { nowMs: integer },
})

export async function joinInstance(
  db: Database,
  info: InstanceInfo,
  leaseMs: number,
): Promise<{ readonly now: number }> {
  db.lease.heard(leaseMs)
  const args = {
    instanceId: info.id,
    instanceInfo: JSON.stringify(info),
    appName: info.app,
    declarationsHash: info.declarations,
    leaseMs,
    jobDeclarations: [...new Map(info.jobs.map((job) => [job.name, job])).values()],
  }
  const { nowMs } = await db.withProof((proof) =>
    call(db, join, { ...args, proofNumber: proof }, { patience: 'prompt' }),
  )
  return { now: nowMs }
}
