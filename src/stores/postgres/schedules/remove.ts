import type { RemoveResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { decideRemoval } from './apply.js'
import { changeSchedules, type ScheduleChange } from './change.js'

export async function removeSchedules(
  db: Database,
  ids: readonly string[],
  ifVersion?: number,
): Promise<RemoveResult[]> {
  if (ids.length === 0) return []
  return changeSchedules(db, { ids, repeatable: ifVersion === undefined }, (now, seen) => {
    const changes = new Map<string, ScheduleChange>()
    const result = ids.map((id) => decideRemoval(seen.get(id), changes, now, ifVersion))
    return { changes: [...changes.values()], result }
  })
}
