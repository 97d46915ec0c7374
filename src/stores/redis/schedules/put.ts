/**
 * Puts of single schedules that come at the same time share the scripts that read and write.
 *
 * - They share within a shard, so that none fails because another shard does.
 * - Two puts of the same schedule do not share: the second builds on the result of the first.
 * - A put with an invalid definition throws, and then none of those that shared with it has been written. Each is then done
 *   alone, so that only the invalid one fails.
 */

import { BelfryError } from '../../../core/errors.js'
import { decidePut, type TakeBack, type UnclaimedTick } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { inShards, shardOf } from '../cluster/shards.js'
import { CoalescedWrites } from '../connection/coalesced-writes.js'
import type { Server } from '../connection/server.js'
import { change, type Decide, type Decision, decideOn, type Found, NO_TICKS, type ScheduleChange } from './change.js'

const SHARING = { most: 50, atOnce: 2 }

type Put = { readonly result: PutResult | undefined } | { readonly error: unknown }

export class Puts {
  readonly #server: Server
  /** By shard. */
  readonly #calls: CoalescedWrites<ScheduleWrite, Put>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async put(writes: readonly ScheduleWrite[]): Promise<readonly PutResult[]> {
    const [only] = writes
    if (only === undefined || writes.length > 1) return putSchedules(this.#server, writes)
    const shard = shardOf(only.id, this.#server.shards)
    this.#calls[shard] ??= new CoalescedWrites((all) => this.#putInTurn(all), SHARING)
    const put = await this.#calls[shard].call(only)
    if ('error' in put) throw put.error
    return put.result === undefined ? [] : [put.result]
  }

  async #putInTurn(writes: readonly ScheduleWrite[]): Promise<Put[]> {
    const puts = new Map<ScheduleWrite, Put>()
    for (let left = writes; left.length > 0; ) {
      const first = new Map<string, ScheduleWrite>()
      const later: ScheduleWrite[] = []
      for (const write of left) {
        if (first.has(write.id)) later.push(write)
        else first.set(write.id, write)
      }
      const together = [...first.values()]
      const answers = await this.#putTogether(together)
      for (const [at, write] of together.entries()) puts.set(write, answers[at] ?? { result: undefined })
      left = later
    }
    return writes.map((write) => puts.get(write) ?? { result: undefined })
  }

  async #putTogether(writes: readonly ScheduleWrite[]): Promise<Put[]> {
    try {
      return (await putSchedules(this.#server, writes)).map((result) => ({ result }))
    } catch (error) {
      const isOfTheStore = error instanceof BelfryError && error.code.startsWith('STORE_')
      if (writes.length === 1 || isOfTheStore) return writes.map(() => ({ error }))
      return (await Promise.all(writes.map((write) => this.#putTogether([write])))).flat()
    }
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
