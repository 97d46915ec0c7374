/** Putting schedules and removing others, as one. */
import { decidePut, decideRemove, type TakeBack } from '../../../core/schedules/declare.js'
import type { PutResult, RemoveResult, ScheduleWrite } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { changeSchedules, NOTHING_SEEN, type ScheduleChange, type Seen } from './change.js'

/** Versions are given by the database, when all is decided. */
export const UNKNOWN_VERSION = -1

export async function applySchedules(
  db: Database,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Promise<PutResult[]> {
  const ids = [...writes.map(({ id }) => id), ...removals]
  if (ids.length === 0) return []
  // Repeated, a write over one version would conflict with itself.
  const repeatable = writes.every(({ ifVersion }) => ifVersion === undefined)
  return changeSchedules(db, { ids, repeatable }, ({ now, seen }) => {
    const changes = new Map<string, ScheduleChange>()
    const results = writes.map((write) => decideWrite(write, seen.get(write.id) ?? NOTHING_SEEN, changes, now))
    for (const id of removals) decideRemoval(seen.get(id), changes, now)
    return {
      changes: [...changes.values()],
      outcome: (versions) => results.map((result) => withVersion(result, versions)),
    }
  })
}

/** Several writes to one schedule in a batch build on each other, and are written as one. */
function decideWrite(write: ScheduleWrite, seen: Seen, changes: Map<string, ScheduleChange>, now: number): PutResult {
  const { id, definition, ifVersion } = write
  const earlier = changes.get(id)
  const schedule = earlier?.schedule ?? seen.schedule
  if (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0)) return { outcome: 'conflict', schedule }
  const taken = new Set([...(earlier?.takeBack?.remove ?? []), ...(earlier?.takeBack?.skip ?? [])])
  const unclaimed = seen.unclaimed.filter(({ run }) => !taken.has(run))
  const decision = decidePut(id, definition, schedule, unclaimed, UNKNOWN_VERSION, now)
  if (decision.outcome === 'unchanged') return decision
  changes.set(id, { seen, schedule: decision.schedule, takeBack: joined(earlier?.takeBack, decision.takeBack) })
  return { outcome: decision.outcome, schedule: decision.schedule }
}

function joined(one: TakeBack | undefined, other: TakeBack): TakeBack {
  if (one === undefined) return other
  return {
    remove: [...one.remove, ...other.remove],
    skip: [...one.skip, ...other.skip],
    reason: other.reason,
    unrecorded: [...one.unrecorded, ...other.unrecorded],
  }
}

function withVersion(result: PutResult, versions: ReadonlyMap<string, number>): PutResult {
  const { schedule } = result
  if (schedule === undefined || schedule.version !== UNKNOWN_VERSION) return result
  const version = versions.get(schedule.id) ?? schedule.version
  return { outcome: result.outcome, schedule: { ...schedule, version } }
}

export function decideRemoval(
  found: Seen | undefined,
  changes: Map<string, ScheduleChange>,
  now: number,
  ifVersion?: number,
): RemoveResult {
  if (found?.schedule === undefined || changes.has(found.schedule.id)) return 'missing'
  if (ifVersion !== undefined && ifVersion !== found.schedule.version) return 'conflict'
  const takeBack = decideRemove(found.schedule, found.unclaimed, now)
  changes.set(found.schedule.id, { seen: found, schedule: undefined, takeBack })
  return 'removed'
}
