/**
 * Shards: the parts into which a store is divided, each with all its keys under one hash tag, so that scripts find them
 * together and the masters of a cluster share the work. What belongs together by its name is in the same shard: a schedule
 * with its runs by the schedule's id, a lock by its name.
 *
 * How many there are is written down when a store is first opened, and read from there ever after: with another number
 * everything would be looked for in the wrong place.
 */
import { failure } from '../../../core/errors.js'
import type { RunKey } from '../../../core/runs/key.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { number, text } from '../connection/shapes.js'
import { runPlace } from '../runs/run-codec.js'
import { firstShard } from '../schema/keys.js'
import agreeSource from './agree-on-shards.lua'
import { SLOTS, slotOf } from './slots.js'

export const MAX_SHARDS = 256
/** Divisible by the usual numbers of masters. */
export const CLUSTER_SHARDS = 12

const agreeScript = luaScript({
  name: 'cluster/agree-on-shards',
  source: agreeSource,
  takes: { shards: number },
  gives: { shards: number, channel: text },
})

interface Agreed {
  /** The number of shards of a store, which is now fixed. */
  readonly shards: number
  /** Where hints are published, as scripts name it: a client may put a prefix of its own before every key. */
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

/** The beginnings of the keys of all shards, whose slots are spread evenly over a cluster. */
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

/** In which shard a name is. FNV-1a, with a last stir so that names which differ at their end are spread too. */
export function shardOf(name: string, count: number): number {
  if (count === 1) return 0
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash >>> 8) % count
}

/** The shard that an id names. An id that the store did not give out is in none, and is looked for in the first. */
export function homeOf(server: Server, run: string): number {
  const shard = runPlace(run)?.shard ?? 0
  return shard < server.shards ? shard : 0
}

/** The shard of a run's key, when it is not the run's own. */
export function keyElsewhere(server: Server, shard: number, key: RunKey | 'unstamped' | undefined): number | undefined {
  if (key === undefined || key === 'unstamped' || server.shards === 1) return undefined
  const home = shardOf(key.name, server.shards)
  return home === shard ? undefined : home
}

/** Items by the shard that each belongs to, with their places in the list. */
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

/** Does something with the items of each shard at once, and answers in the order of the items. */
export async function inShards<Item, Result>(
  items: readonly Item[],
  shardFor: (item: Item) => number,
  work: (shard: number, items: readonly Item[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const groups = byShard(items, shardFor)
  const [only] = groups
  if (only !== undefined && groups.length === 1) return [...(await work(only.shard, only.items))]
  const results = new Map<number, Result>()
  await Promise.all(
    groups.map(async ({ shard, items: own, places }) => {
      const answers = await work(shard, own)
      for (const [at, place] of places.entries()) {
        const answer = answers[at]
        if (answer !== undefined || at < answers.length) results.set(place, answer as Result)
      }
    }),
  )
  return items.map((_, place) => results.get(place) as Result)
}

/** Does the same in every shard at once. */
export function everywhere<Result>(server: Server, work: (shard: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: server.shards }, (_, shard) => work(shard)))
}
