import type { CancelResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, changes, sqlFunction, text } from '../schema/sql-function.js'
import source from './cancel.sql'
import { runNumber } from './run-codec.js'

const cancel = sqlFunction({
  name: 'cancel_run',
  source,
  takes: { runId: text },
  gives: { outcome: text, hints: changes },
})

export async function cancelRun(db: Database, id: string): Promise<CancelResult> {
  const runId = runNumber(id)
  if (runId === undefined) return 'missing'
  const { outcome, hints } = await call(db, cancel, { runId })
  db.announce(hints)
  return outcome as CancelResult
}
