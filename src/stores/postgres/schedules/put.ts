import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { applySchedules } from './apply.js'

export function putSchedules(db: Database, writes: readonly ScheduleWrite[]): Promise<PutResult[]> {
  return applySchedules(db, writes, [])
}
