import { readRunId } from '../../../core/runs/run-id.js'
import type { CancelResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, changes, integer, sqlFunction, text } from '../schema/sql-function.js'
import source from './cancel.sql'
import { mark } from './run-codec.js'

const cancel = sqlFunction({
  name: 'cancel_run',
  source,
  takes: { runId: integer, runMark: mark },
  gives: { outcome: text, hints: changes },
})

export async function cancelRun(db: Database, id: string): Promise<CancelResult> {
  const name = readRunId(id)
  if (name === undefined) return 'missing'
  const { outcome, hints } = await call(db, cancel, { runId: name.number, runMark: name.mark })
  db.announce(hints)
  return outcome as CancelResult
}
