import { readRunId } from '../../../core/runs/run-id.js'
import type { RetryResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, integer, sqlFunction, text } from '../schema/sql-function.js'
import source from './retry.sql'
import { mark } from './run-codec.js'

const retry = sqlFunction({
  name: 'retry_run',
  source,
  takes: { runId: integer, runMark: mark },
  gives: { outcome: text },
})

export async function retryRun(db: Database, id: string): Promise<RetryResult> {
  const name = readRunId(id)
  if (name === undefined) return 'missing'
  const { outcome } = await call(
    db,
    retry,
    { runId: name.number, runMark: name.mark },
    { repeatable: false, patience: 'patient' },
  )
  db.announce(['runs'])
  return outcome as RetryResult
}
