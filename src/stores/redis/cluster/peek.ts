/**
 * Some operations take the first items of all shards together, at most `limit` in all. A peek reads the first items of
 * each shard and computes how many to take from each. It reserves nothing: another instance may take them first.
 */

import type { Run } from '../../../core/runs/run.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { runId } from '../runs/run-codec.js'
import dueSource from './peek-due.lua'
import endedSource from './peek-ended.lua'
import readySource from './peek-ready.lua'
import { type Damage, everywhere } from './shards.js'

/** How many candidates of each shard are among the lowest `limit` candidates of all shards. */
function sharesOf(candidates: readonly (readonly number[])[], limit: number): number[] {
  const all = candidates.flatMap((own, shard) => own.map((value) => ({ value, shard })))
  all.sort((one, other) => one.value - other.value || one.shard - other.shard)
  const shares = candidates.map(() => 0)
  for (const { shard } of all.slice(0, Math.max(limit, 0))) shares[shard] = (shares[shard] ?? 0) + 1
  return shares
}

/**
 * Shards that are asked concurrently answer within this time of each other. A larger difference comes from their
 * clocks.
 */
const AT_ONCE_MS = 250

/**
 * The earliest `next` of several shards, converted to the clock of the shard that is furthest ahead. An item becomes
 * due by the clock of its own shard. Without the conversion the caller would wake too early for a shard whose clock is
 * behind, and poll it again and again.
 */
export function firstNext(
  latest: number,
  shards: readonly { readonly now: number; readonly next: number | undefined }[],
): number | undefined {
  const nexts = shards.flatMap(({ now, next }) => {
    const behind = latest - now > AT_ONCE_MS ? latest - now : 0
    return next === undefined ? [] : [next + behind]
  })
  return nexts.length === 0 ? undefined : Math.min(...nexts)
}

/** The same for shards that were peeked at concurrently: their answers tell how far their clocks are apart. */
export function nextOfAll(
  peeks: readonly { readonly now: number }[],
  nexts: readonly (number | undefined)[],
): number | undefined {
  const latest = Math.max(...peeks.map(({ now }) => now))
  return firstNext(
    latest,
    peeks.map(({ now }, shard) => ({ now, next: nexts[shard] })),
  )
}

const dueScript = luaScript({
  name: 'cluster/peek-due',
  source: dueSource,
  takes: { lookaheadMs: number, limit: number },
  gives: { now: number, dueAt: listOf(number), nextDueAt: maybe(number) },
})

export interface DuePeek {
  readonly now: number
  readonly nextDueAt?: number
  /** How many schedules to take from this shard. */
  readonly share: number
}

/** Decides how many schedules to take from each shard, so that the ones that have been due longest are taken. */
export async function peekDue(server: Server, lookaheadMs: number, limit: number, damage: Damage): Promise<DuePeek[]> {
  const read = await everywhere(server, (shard) =>
    damage.spare(server.call(dueScript, shard, { lookaheadMs, limit }), { now: 0, dueAt: [] }),
  )
  const dueAt = read.map((each) => each.dueAt)
  return sharesOf(dueAt, limit).map((share, shard) => ({ now: 0, ...read[shard], share }))
}

const readyScript = luaScript({
  name: 'cluster/peek-ready',
  source: readySource,
  takes: { instance: text, claim: number, limit: number, targets: listOf(named({ name: text, limit: number })) },
  gives: {
    now: number,
    ready: listOf(named({ target: text, priority: number, readyAt: number, number: text })),
    nextReadyAt: maybe(number),
    known: flag,
  },
})

export interface Asked {
  readonly name: string
  readonly limit: number
}

export interface ReadyPeek {
  readonly now: number
  readonly nextReadyAt?: number
  /** How many runs to claim from this shard: of each target, and in all (`limit`). */
  readonly share: ReadonlyMap<string, number>
  readonly limit: number
  /** The shard has seen this claim number before, so the claim is a repetition. */
  readonly known: boolean
}

/**
 * Decides how many runs to claim from each shard. Runs with the highest priority come first, then those that have been
 * ready longest, then the oldest.
 */
export async function peekReady(
  server: Server,
  { instance, claim, limit }: { readonly instance: string; readonly claim: number; readonly limit: number },
  targets: readonly Asked[],
  damage: Damage,
): Promise<ReadyPeek[]> {
  const read = await everywhere(server, (shard) =>
    damage.spare(server.call(readyScript, shard, { instance, claim, limit, targets }), {
      ...{ now: 0, ready: [], known: false },
    }),
  )
  const left = new Map(targets.map((target) => [target.name, target.limit]))
  const peeks = read.map((each) => ({ ...each, share: new Map<string, number>(), limit: 0 }))
  const candidates = peeks.flatMap((peek, shard) =>
    peek.ready.map((each) => ({ ...each, peek, id: runId(shard, each.number) })),
  )
  let taken = 0
  for (const { peek, target } of candidates.sort(inClaimOrder)) {
    const more = left.get(target) ?? 0
    if (taken >= limit || more <= 0) continue
    left.set(target, more - 1)
    peek.share.set(target, (peek.share.get(target) ?? 0) + 1)
    peek.limit += 1
    taken += 1
  }
  return peeks
}

export function inClaimOrder(one: Claimable, other: Claimable): number {
  if (one.priority !== other.priority) return other.priority - one.priority
  if (one.readyAt !== other.readyAt) return one.readyAt - other.readyAt
  return one.id < other.id ? -1 : 1
}

type Claimable = Pick<Run, 'id' | 'priority' | 'readyAt'>

const endedScript = luaScript({
  name: 'cluster/peek-ended',
  source: endedSource,
  takes: { limit: number },
  gives: { kept: number, oldest: listOf(number) },
})

/** How many ended runs each shard may keep, so that the newest `maxRuns` of all shards are kept. */
export async function peekEnded(server: Server, maxRuns: number, limit: number): Promise<number[]> {
  const counted = await everywhere(server, (shard) => server.call(endedScript, shard, { limit: 0 }))
  const tooMany = counted.reduce((sum, { kept }) => sum + kept, 0) - maxRuns
  // Nothing has to be deleted. The limit is not the shard's current number of runs: runs that end before the prune
  // would then push out runs that may stay.
  if (tooMany <= 0) return counted.map(() => maxRuns)
  const most = Math.min(tooMany, limit)
  const read = await everywhere(server, (shard) => server.call(endedScript, shard, { limit: most }))
  const oldest = read.map((each) => each.oldest)
  const goes = sharesOf(oldest, most)
  return counted.map(({ kept }, shard) => kept - (goes[shard] ?? 0))
}
