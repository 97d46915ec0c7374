import { readRunId } from '../../../core/runs/run-id.js'
import type { Stamp } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, sqlFunction } from '../schema/sql-function.js'
import { stampRows } from './run-codec.js'
import source from './stamp.sql'

const stamp = sqlFunction({ name: 'stamp_runs', source, takes: { stamps: stampRows }, gives: {} })

export async function stampRuns(db: Database, stamps: readonly Stamp[]): Promise<void> {
  const known = stamps.filter(({ run }) => readRunId(run) !== undefined)
  if (known.length === 0) return
  await call(db, stamp, { stamps: known }, { patience: 'patient' })
  db.announce(['runs'])
}
