import {
  decidePause,
  decidePut,
  decideRemove,
  decideResume,
  type TakeBack,
  type UnclaimedTick,
} from '../../../core/declare.js'
import { failure } from '../../../core/errors.js'
import type { Schedule } from '../../../core/schedule.js'
import type { PutResult, RemoveResult, ScheduleWrite } from '../../../core/store.js'
import { inShards, shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { type Found, readSchedules, type ScheduleChange, writeSchedules } from './schedule-changes.js'

/** How often a write is decided anew because others were faster: more than that is no coincidence. */
const MAX_TRIES = 100

const NO_TICKS: TakeBack = { remove: [], skip: [], reason: 'replaced', unrecorded: [] }

interface Decision<Result> {
  readonly changes: readonly ScheduleChange[]
  /** What is answered once all is written: versions count from this one on. */
  readonly result: (base: number) => Result
}

type Decide<Result> = (found: readonly Found[], now: number) => Decision<Result>

/** Decides on what is there. */
async function decided<Result>(
  server: Server,
  shard: number,
  ids: readonly string[],
  decide: Decide<Result>,
): Promise<Decision<Result>> {
  const { now, found } = await readSchedules(server, shard, ids)
  return decide(found, now)
}

/** Writes if what was decided on is still there, and decides anew if not: as often as it takes. */
async function change<Result>(
  server: Server,
  shard: number,
  ids: readonly string[],
  decide: Decide<Result>,
  first?: Decision<Result>,
): Promise<Result> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const known = tries === 0 ? first : undefined
    const { changes, result } = known ?? (await decided(server, shard, ids, decide))
    const base = changes.length === 0 ? 0 : await writeSchedules(server, shard, changes)
    if (base !== undefined) return result(base)
  }
  throw failure('STORE_UNREACHABLE', `schedule "${ids[0]}" and others are written by too many at once: try again`)
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
    first.set(shard, await decided(server, shard, idsOf(own), decidePuts(own)))
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
      result: (base) => results.map(({ result, place }) => withVersion(result, place, base)),
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
function withVersion(result: PutResult, place: number | undefined, base: number): PutResult {
  if (place === undefined || result.outcome === 'conflict') return result
  return { outcome: result.outcome, schedule: { ...result.schedule, version: base + place } }
}

export function removeSchedules(server: Server, ids: readonly string[], ifVersion?: number): Promise<RemoveResult[]> {
  return inShards(
    ids,
    (id) => shardOf(id, server.shards),
    (shard, own) => change(server, shard, [...new Set(own)], decideRemovals(own, ifVersion)),
  )
}

/** Shards share nothing: all of it is decided first, then each is written by itself, and only then others are removed. */
export async function applySchedules(
  server: Server,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Promise<PutResult[]> {
  const results = await putSchedules(server, writes)
  await removeSchedules(server, removals)
  return results
}

function decideRemovals(ids: readonly string[], ifVersion: number | undefined): Decide<RemoveResult[]> {
  return (found, now) => {
    const left = new Map(found.map((each) => [each.id, each]))
    const changes: ScheduleChange[] = []
    const results = ids.map((id): RemoveResult => {
      const each = left.get(id)
      if (each?.schedule === undefined) return 'missing'
      if (ifVersion !== undefined && ifVersion !== each.schedule.version) return 'conflict'
      left.delete(id)
      const takeBack = decideRemove(each.schedule, each.unclaimed, now)
      changes.push({ found: each, schedule: undefined, place: 0, takeBack })
      return 'removed'
    })
    return { changes, result: () => results }
  }
}

/** Decides on one schedule: answers it as it is, or as it becomes. */
function changeOne(
  server: Server,
  id: string,
  decide: (found: Found, schedule: Schedule, now: number) => { schedule: Schedule; takeBack: TakeBack } | undefined,
): Promise<Schedule | undefined> {
  return change<Schedule | undefined>(server, shardOf(id, server.shards), [id], ([found], now) => {
    const decision = found?.schedule === undefined ? undefined : decide(found, found.schedule, now)
    if (found === undefined || decision === undefined) return { changes: [], result: () => found?.schedule }
    const { schedule, takeBack } = decision
    return {
      changes: [{ found, schedule, place: 1, takeBack }],
      result: (base) => ({ ...schedule, version: base + 1 }),
    }
  })
}

export function pauseSchedule(server: Server, id: string, note: string | undefined): Promise<Schedule | undefined> {
  return changeOne(server, id, ({ unclaimed }, schedule, now) => {
    if (schedule.pausedAt !== undefined && schedule.pauseNote === note) return undefined
    return decidePause(schedule, unclaimed, 0, now, note)
  })
}

export function resumeSchedule(server: Server, id: string): Promise<Schedule | undefined> {
  return changeOne(server, id, (_, before, now) => {
    if (before.pausedAt === undefined) return undefined
    const { schedule, skips } = decideResume(before, 0, now)
    return { schedule, takeBack: { ...NO_TICKS, unrecorded: skips } }
  })
}
