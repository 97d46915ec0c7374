import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { runNumber } from '../../../core/runs/run-id.js'
import type { Database } from '../connection/database.js'
import {
  boolean,
  call,
  changes,
  integer,
  integers,
  milliseconds,
  optional,
  sqlFunction,
  text,
} from '../schema/sql-function.js'
import source from './beat.sql'
import { attemptRows } from './instance-codec.js'

const beat = sqlFunction({
  name: 'beat',
  source,
  takes: { instanceId: text, leaseMs: milliseconds, listed: attemptRows, settledClaim: integer },
  gives: {
    nowMs: integer,
    lastBeatAt: optional(integer),
    alive: boolean,
    own: integers,
    cancelled: integers,
    hints: changes,
  },
})

export async function beatInstance(db: Database, request: BeatRequest): Promise<BeatResult> {
  const { instance, leaseMs, attempts, claimsSettled } = request
  db.lease.heard(leaseMs)
  const { nowMs, lastBeatAt, alive, own, cancelled, hints } = await call(
    db,
    beat,
    { instanceId: instance, leaseMs, listed: attempts, settledClaim: claimsSettled },
    { patience: 'prompt' },
  )
  if (!alive) return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now: nowMs }
  db.announce(hints)
  const [kept, toCancel] = [new Set(own), new Set(cancelled)]
  const runs = attempts.map(({ run }) => run)
  return {
    alive: true,
    lost: runs.filter((run) => !kept.has(runNumber(run))),
    cancel: runs.filter((run) => toCancel.has(runNumber(run))),
    ...(lastBeatAt === undefined ? {} : { lastBeatAt }),
    now: nowMs,
  }
}
