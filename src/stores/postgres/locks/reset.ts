import type { Database } from '../connection/database.js'
import { call, changes, integer, sqlFunction, text } from '../schema/sql-function.js'
import source from './reset.sql'

const reset = sqlFunction({
  name: 'reset_lock',
  source,
  takes: { lockName: text },
  gives: { count: integer, hints: changes },
})

export async function resetLease(db: Database, lockName: string): Promise<number> {
  const { count, hints } = await call(db, reset, { lockName }, { repeatable: false, patience: 'patient' })
  db.announce(hints)
  return count
}
