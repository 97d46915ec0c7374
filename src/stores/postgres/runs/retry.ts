import type { RetryResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, sqlFunction, text } from '../schema/sql-function.js'
import source from './retry.sql'
import { runNumber } from './run-codec.js'

const retry = sqlFunction({ name: 'retry_run', source, takes: { runId: text }, gives: { outcome: text } })

export async function retryRun(db: Database, id: string): Promise<RetryResult> {
  const runId = runNumber(id)
  if (runId === undefined) return 'missing'
  const { outcome } = await call(db, retry, { runId }, { repeatable: false, patience: 'patient' })
  db.announce(['runs'])
  return outcome as RetryResult
}
