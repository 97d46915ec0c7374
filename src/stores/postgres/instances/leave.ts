import type { Database } from '../connection/database.js'
import { call, sqlFunction, text } from '../schema/sql-function.js'
import source from './leave.sql'

const leave = sqlFunction({ name: 'leave', source, takes: { instanceId: text }, gives: {} })

export async function leaveInstance(db: Database, instanceId: string): Promise<void> {
  await call(db, leave, { instanceId })
  db.announce(['runs'])
}
