/** Putting schedules. Puts of single schedules that come at the same time share the scripts that read and write. */
import { decidePut, type TakeBack, type UnclaimedTick } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { coalescedInShards, inShards, shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { change, type Decide, type Decision, decideOn, type Found, NO_TICKS, type ScheduleChange } from './change.js'

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

/** What a write would find and leave behind, while the batch is not written yet. */
interface Staged {
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
}

type Decided = { readonly result: PutResult; readonly place?: number }

/** Nothing is written in any shard before all has been decided in every one. */
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

function decidePuts(writes: readonly ScheduleWrite[]): Decide<PutResult[]> {
  return (found, now) => {
    const batch = new PutBatch(new Map(found.map((each) => [each.id, each])), now)
    const results = writes.map((write) => batch.decide(write))
    return {
      changes: batch.changes(),
      result: (versionsFrom) => results.map(({ result, place }) => withVersion(result, place, versionsFrom)),
    }
  }
}

/** Decides on all writes before the first is done, because one that throws must leave nothing behind. */
class PutBatch {
  readonly #found: ReadonlyMap<string, Found>
  readonly #now: number
  readonly #staged = new Map<string, Staged>()
  readonly #changes = new Map<string, ScheduleChange>()
  #place = 0

  constructor(found: ReadonlyMap<string, Found>, now: number) {
    this.#found = found
    this.#now = now
  }

  decide({ id, definition, ifVersion }: ScheduleWrite): Decided {
    const found = this.#found.get(id)
    const { schedule, unclaimed } = this.#staged.get(id) ?? {
      schedule: found?.schedule,
      unclaimed: found?.unclaimed ?? [],
    }
    if (found === undefined || (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0))) {
      return { result: { outcome: 'conflict', schedule } }
    }
    const decision = decidePut(id, definition, schedule, unclaimed, 0, this.#now)
    if (decision.outcome === 'unchanged') return { result: decision }
    this.#place += 1
    this.#stage(found, decision.schedule, decision.takeBack, unclaimed)
    return { result: { outcome: decision.outcome, schedule: decision.schedule }, place: this.#place }
  }

  changes(): readonly ScheduleChange[] {
    return [...this.#changes.values()]
  }

  #stage(found: Found, schedule: Schedule, takeBack: TakeBack, unclaimed: readonly UnclaimedTick[]): void {
    const taken = new Set([...takeBack.remove, ...takeBack.skip])
    this.#staged.set(found.id, { schedule, unclaimed: unclaimed.filter(({ run }) => !taken.has(run)) })
    const earlier = this.#changes.get(found.id)?.takeBack ?? NO_TICKS
    const all: TakeBack = {
      remove: [...earlier.remove, ...takeBack.remove],
      skip: [...earlier.skip, ...takeBack.skip],
      reason: takeBack.reason,
      unrecorded: [...earlier.unrecorded, ...takeBack.unrecorded],
    }
    this.#changes.set(found.id, { found, schedule, place: this.#place, takeBack: all })
  }
}

/** Versions are the store's to give: they are known once all is written. */
function withVersion(result: PutResult, place: number | undefined, versionsFrom: number): PutResult {
  if (place === undefined || result.outcome === 'conflict') return result
  return { outcome: result.outcome, schedule: { ...result.schedule, version: versionsFrom + place } }
}
