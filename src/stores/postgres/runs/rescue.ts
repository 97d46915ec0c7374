import type { RescueResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { call, changes, integer, sqlFunction } from '../schema/sql-function.js'
import source from './rescue.sql'

const rescue = sqlFunction({
  name: 'rescue_runs',
  source,
  takes: { runLimit: integer },
  gives: { rescued: integer, lost: integer, hints: changes },
})

export async function rescueRuns(db: Database, limit: number): Promise<RescueResult> {
  const { rescued, lost, hints } = await call(db, rescue, { runLimit: limit }, { patience: 'prompt' })
  db.announce(hints)
  return { rescued, lost }
}
