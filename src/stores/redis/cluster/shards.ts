/**
 * A store is divided into shards. All keys of a shard have the same hash tag, so one script can use all of them, and a
 * cluster spreads the shards over its masters. A name decides the shard: a schedule and its runs are in the shard of
 * the schedule's id, a lock is in the shard of its name.
 *
 * The number of shards is stored when a store is first opened and never changes: with another number, the same names
 * would lead to other shards.
 */
import { CoalescedWrites, type CoalescedWritesOptions } from '../../../core/connection/coalesced-writes.js'
import { BelfryError, failure } from '../../../core/errors.js'
import type { RunKey } from '../../../core/runs/key.js'
import { luaScript, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { runPlace } from '../runs/run-codec.js'
import { firstShard } from '../schema/keys.js'
import agreeSource from './agree-on-shards.lua'
import { SLOTS, slotOf } from './slots.js'

export const MAX_SHARDS = 256
/** The default in a cluster: divisible by the usual numbers of masters. */
export const CLUSTER_SHARDS = 12

const agreeScript = luaScript({
  name: 'cluster/agree-on-shards',
  source: agreeSource,
  takes: { shards: number },
  gives: { shards: number, channel: text },
})

interface Agreed {
  /** The stored number of shards. */
  readonly shards: number
  /** The channel of hints as scripts see it: a client may put a prefix of its own before every key. */
  readonly channel: string
}

export async function agreeOnShards(server: Server, asked: number | undefined, usual: number): Promise<Agreed> {
  const agreed = await server.callAt(agreeScript, firstShard(server.prefix), { shards: asked ?? usual })
  if (asked === undefined || asked === agreed.shards) return agreed
  throw failure(
    'OPTION_INVALID',
    `the Redis store "${server.prefix}" was made with ${agreed.shards} shards, and cannot be opened with ${asked}: leave \`shards\` out, or use another prefix`,
  )
}

/**
 * The key prefix of each shard. The hash tags are chosen so that the shards' slots are spread evenly over a cluster.
 */
export function shardKeys(prefix: string, count: number): string[] {
  const start = slotOf('0')
  const tolerance = Math.max(Math.floor(SLOTS / count / 16), 2)
  return Array.from({ length: count }, (_, shard) => {
    if (shard === 0) return firstShard(prefix)
    const wanted = (start + Math.floor((shard * SLOTS) / count)) % SLOTS
    return `${prefix}{${tagNear(shard, wanted, tolerance)}}:`
  })
}

function tagNear(shard: number, wanted: number, tolerance: number): string {
  for (let at = 0; ; at += 1) {
    const tag = at === 0 ? String(shard) : `${shard}.${at.toString(36)}`
    if (Math.abs(slotOf(tag) - wanted) <= tolerance) return tag
  }
}

/** The shard of a name, by an FNV-1a hash. A final mixing step also spreads names that differ only at their end. */
export function shardOf(name: string, count: number): number {
  if (count === 1) return 0
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash >>> 8) % count
}

/**
 * The shard in a run's id. An id that the store did not issue has none: the lookup goes to the first shard, and finds
 * nothing.
 */
export function homeOf(server: Server, run: string): number {
  const shard = runPlace(run)?.shard ?? 0
  return shard < server.shards ? shard : 0
}

/** The shard of a run's exclusive key, or undefined if that is the run's own shard or the run has no key. */
export function keyElsewhere(server: Server, shard: number, key: RunKey | 'unstamped' | undefined): number | undefined {
  if (key === undefined || key === 'unstamped' || server.shards === 1) return undefined
  const home = shardOf(key.name, server.shards)
  return home === shard ? undefined : home
}

/** Groups items by shard, with their positions in the list. */
export function byShard<Item>(
  items: readonly Item[],
  shardFor: (item: Item) => number,
): { readonly shard: number; readonly items: readonly Item[]; readonly places: readonly number[] }[] {
  const groups = new Map<number, { shard: number; items: Item[]; places: number[] }>()
  for (const [place, item] of items.entries()) {
    const shard = shardFor(item)
    const group = groups.get(shard) ?? { shard, items: [], places: [] }
    groups.set(shard, group)
    group.items.push(item)
    group.places.push(place)
  }
  return [...groups.values()]
}

/** Runs `work` on the items of each shard, in parallel. The results are in the order of the items. */
export async function inShards<Item, Result>(
  items: readonly Item[],
  shardFor: (item: Item) => number,
  work: (shard: number, items: readonly Item[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const groups = byShard(items, shardFor)
  const [only] = groups
  if (only !== undefined && groups.length === 1) return [...(await work(only.shard, only.items))]
  const results: Result[] = []
  await Promise.all(
    groups.map(async ({ shard, items: own, places }) => {
      const answers = await work(shard, own)
      for (const [at, place] of places.entries()) results[place] = answers[at] as Result
    }),
  )
  return results
}

/**
 * Coalesces concurrent calls for single items: calls for the same shard share a script, so that the client and the
 * server pay the cost of one command for all of them (bench `locks`, 50 in flight). Calls for different shards never
 * share a script, so a failing shard fails only its own calls.
 */
export function coalescedInShards<Item, Result>(
  shardFor: (item: Item) => number,
  work: (shard: number, items: readonly Item[]) => Promise<readonly Result[]>,
  options: CoalescedWritesOptions<Item>,
): (item: Item) => Promise<Result> {
  const calls: CoalescedWrites<Item, Result>[] = []
  return async (item) => {
    const shard = shardFor(item)
    calls[shard] ??= new CoalescedWrites((all) => work(shard, all), options)
    const [result] = await calls[shard].write([item])
    return result as Result
  }
}

/**
 * Lets an operation over all shards continue when one shard is damaged, which means that another program has
 * overwritten one of its keys.
 */
export class Damage {
  /** The error of the first damaged shard. */
  error: BelfryError | undefined

  /** The answer of a shard, or `instead` if the shard is damaged. */
  async spare<Answer>(answer: Promise<Answer>, instead: Answer): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      if (!(error instanceof BelfryError) || error.code !== 'STORE_INVALID') throw error
      this.error ??= error
      return instead
    }
  }

  /** The `damage` field for the result of an operation over all shards. */
  get found(): { readonly damage?: Error } {
    return this.error === undefined ? {} : { damage: this.error }
  }
}

/** Runs `work` for every shard, in parallel. */
export function everywhere<Result>(server: Server, work: (shard: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: server.shards }, (_, shard) => work(shard)))
}
