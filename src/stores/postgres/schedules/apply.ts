/** Puts schedules and removes others, in one transaction. */
import { decidePut, decideRemove, type TakeBack } from '../../../core/schedules/declare.js'
import type { PutResult, RemoveResult, ScheduleWrite } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { changeSchedules, type ScheduleChange, type Seen } from './change.js'

type Changes = Map<string, ScheduleChange>

export async function applySchedules(
  db: Database,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Promise<PutResult[]> {
  const ids = [...writes.map(({ id }) => id), ...removals]
  if (ids.length === 0) return []
  // A write with `ifVersion` is not repeatable: its repetition would conflict with its own first try.
  const repeatable = writes.every(({ ifVersion }) => ifVersion === undefined)
  return changeSchedules(db, { ids, repeatable }, (now, seen) => {
    const changes: Changes = new Map()
    const result = writes.map((write) => decideWrite(write, seen.get(write.id), changes, now))
    for (const id of removals) decideRemoval(seen.get(id), changes, now)
    return { changes: [...changes.values()], result }
  })
}

/**
 * Decides one write. Several writes to one schedule in a batch build on each other, and only the last result is
 * written.
 */
function decideWrite(
  { id, definition, ifVersion }: ScheduleWrite,
  seen: Seen | undefined,
  changes: Changes,
  now: number,
): PutResult {
  if (seen === undefined) throw new Error(`schedule ${id} was not read`)
  const earlier = changes.get(id)
  const schedule = earlier?.schedule ?? seen.schedule
  if (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0)) return { outcome: 'conflict', schedule }
  const taken = new Set([...(earlier?.takeBack?.remove ?? []), ...(earlier?.takeBack?.skip ?? [])])
  const unclaimed = seen.unclaimed.filter(({ run }) => !taken.has(run))
  const decision = decidePut(id, definition, schedule, unclaimed, seen.nextVersion, now)
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

export function decideRemoval(seen: Seen | undefined, changes: Changes, now: number, ifVersion?: number): RemoveResult {
  if (seen?.schedule === undefined || changes.has(seen.schedule.id)) return 'missing'
  const { schedule } = seen
  if (ifVersion !== undefined && ifVersion !== schedule.version) return 'conflict'
  changes.set(schedule.id, { seen, schedule: undefined, takeBack: decideRemove(schedule, seen.unclaimed, now) })
  return 'removed'
}
