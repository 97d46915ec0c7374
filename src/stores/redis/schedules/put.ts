/** Puts schedules. Concurrent puts of single schedules share the scripts that read and write. */
import { decidePut, type TakeBack } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { coalescedInShards, inShards, shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { change, type Decide, type Decision, decideOn, NO_TICKS, type ScheduleChange } from './change.js'

export function puts(server: Server): (writes: readonly ScheduleWrite[]) => Promise<readonly PutResult[]> {
  const single = coalescedInShards<ScheduleWrite, PutResult>(
    ({ id }) => shardOf(id, server.shards),
    (_, writes) => putSchedules(server, writes),
    { nameOf: ({ id }) => id, maxItems: 50 },
  )
  return async (writes) => {
    const [only] = writes
    return only !== undefined && writes.length === 1 ? [await single(only)] : putSchedules(server, writes)
  }
}

/** Decides on the writes of all shards before it writes to any of them. */
export async function putSchedules(server: Server, writes: readonly ScheduleWrite[]): Promise<PutResult[]> {
  const home = ({ id }: ScheduleWrite) => shardOf(id, server.shards)
  const first = new Map<number, Decision<PutResult[]>>()
  await inShards(writes, home, async (shard, own) => {
    first.set(shard, await decideOn(server, shard, idsOf(own), decidePuts(own)))
    return []
  })
  return inShards(writes, home, (shard, own) => change(server, shard, idsOf(own), decidePuts(own), first.get(shard)))
}

function idsOf(writes: readonly ScheduleWrite[]): string[] {
  return [...new Set(writes.map(({ id }) => id))]
}

/** Decides on all writes before the first is done: if a decision throws, nothing has been written. */
function decidePuts(writes: readonly ScheduleWrite[]): Decide<PutResult[]> {
  return (founds, now) => {
    const found = new Map(founds.map((each) => [each.id, each]))
    const changes = new Map<string, ScheduleChange & { readonly schedule: Schedule }>()
    const results = writes.map(({ id, definition, ifVersion }, place): PutResult & { readonly place: number } => {
      const [before, earlier] = [found.get(id), changes.get(id)]
      const schedule = earlier?.schedule ?? before?.schedule
      if (before === undefined || (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0))) {
        return { outcome: 'conflict', schedule, place }
      }
      const takenBack = earlier?.takeBack ?? NO_TICKS
      const left = before.unclaimed.filter(({ run }) => ![...takenBack.remove, ...takenBack.skip].includes(run))
      const decision = decidePut(id, definition, schedule, left, 0, now)
      if (decision.outcome === 'unchanged') return { ...decision, place }
      const takeBack = addedTo(takenBack, decision.takeBack)
      changes.set(id, { found: before, schedule: decision.schedule, place, takeBack })
      return { outcome: decision.outcome, schedule: decision.schedule, place }
    })
    return {
      changes: [...changes.values()],
      result: (versionsFrom) => results.map((result) => withVersion(result, versionsFrom)),
    }
  }
}

function addedTo(one: TakeBack, other: TakeBack): TakeBack {
  return {
    remove: [...one.remove, ...other.remove],
    skip: [...one.skip, ...other.skip],
    reason: other.reason,
    unrecorded: [...one.unrecorded, ...other.unrecorded],
  }
}

/** The store issues the versions when it writes. */
function withVersion({ place, ...result }: PutResult & { readonly place: number }, versionsFrom: number): PutResult {
  if (result.outcome === 'conflict' || result.outcome === 'unchanged') return result
  return { outcome: result.outcome, schedule: { ...result.schedule, version: versionsFrom + place } }
}
