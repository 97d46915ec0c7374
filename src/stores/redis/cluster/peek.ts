/**
 * What stands first in each shard, so that a step over several takes what comes first in all of them. A peek reserves
 * nothing: it only tells how much to ask each shard for, and together never more than was asked for.
 */

import { script } from '../connection/script.js'
import { listOf, type Reply, type Server, textsOf } from '../connection/server.js'
import { word } from '../schema/words.js'
import { everywhere } from './shards.js'

/** Of so many candidates in each shard, how many come from each when the first of all are taken. */
export function sharesOf<Candidate>(
  candidates: readonly (readonly Candidate[])[],
  limit: number,
  before: (one: Candidate, other: Candidate) => number,
): number[] {
  const shares = candidates.map((own) => own.length)
  if (shares.reduce((sum, share) => sum + share, 0) <= limit) return shares
  const all = candidates.flatMap((own, shard) => own.map((candidate) => ({ candidate, shard })))
  all.sort((one, other) => before(one.candidate, other.candidate) || one.shard - other.shard)
  shares.fill(0)
  for (const { shard } of all.slice(0, Math.max(limit, 0))) shares[shard] = (shares[shard] ?? 0) + 1
  return shares
}

/** Shards that are asked at once answer within less than this. */
const AT_ONCE_MS = 250

/**
 * The first of what comes next in several shards. Where clocks differ it is as the latest of them has it: what matters is
 * in how long something comes by the clock of its own shard, or whoever waits for it would ask again and again.
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

const DUE = script(`
local due = redis.call('ZRANGEBYSCORE', KEYS[1] .. 'due', '-inf', '(' .. int(now + ARGV[1] + 1), 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local scores = {}
for at = 2, #due, 2 do scores[#scores + 1] = due[at] end
return { int(now), scores, redis.call('ZRANGE', KEYS[1] .. 'due', 0, 0, 'WITHSCORES')[2] or '-' }`)

export interface DuePeek {
  readonly now: number
  readonly shares: readonly number[]
  readonly nextDueAt: number | undefined
}

/** How many schedules to take from each shard, those due longest first. */
export async function peekDue(server: Server, lookaheadMs: number, limit: number): Promise<DuePeek> {
  const replies = await everywhere(server, (shard) => server.read(DUE, shard, [lookaheadMs, limit]))
  const read = replies.map(listOf)
  const scores = read.map((reply) => textsOf(reply[1]).map(Number))
  const now = Math.max(...read.map((reply) => Number(reply[0])))
  const firsts = read.map((reply) => ({ now: Number(reply[0]), next: floorOf(reply[2]) }))
  return {
    now,
    shares: sharesOf(scores, limit, (one, other) => one - other),
    nextDueAt: firstNext(now, firsts),
  }
}

/** An instant, when there is one. */
function floorOf(score: Reply | undefined): number | undefined {
  const instant = Math.floor(Number(score))
  return Number.isNaN(instant) ? undefined : instant
}

const READY = script(`
local inst, claim, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local found, nextReadyAt = {}, nil
for at = 4, #ARGV, 2 do
  local target, most = ARGV[at], math.min(limit, tonumber(ARGV[at + 1]))
  for _, prio in ipairs(redis.call('ZRANGE', KEYS[1] .. 'p:' .. target, 0, -1)) do
    local key = KEYS[1] .. 'q:' .. prio .. ':' .. target
    local members = most > 0 and redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most) or {}
    for place = 1, #members, 2 do
      found[#found + 1] = (at - 4) / 2 .. ' ' .. prio .. ' ' .. members[place + 1] .. ' ' .. members[place]
    end
    local later = redis.call('ZRANGEBYSCORE', key, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if later[2] then nextReadyAt = math.min(nextReadyAt or math.huge, tonumber(later[2])) end
  end
end
local known = redis.call('ZSCORE', KEYS[1] .. 'ic:' .. inst, claim) and 1 or 0
return { int(now), found, nextReadyAt and int(nextReadyAt) or '-', known }`)

interface Ready {
  readonly target: number
  readonly priority: number
  readonly readyAt: number
  readonly number: string
}

export interface Asked {
  readonly name: string
  readonly limit: number
}

export interface ReadyPeek {
  readonly now: number
  /** For each shard how many of each target to claim. */
  readonly shares: readonly (readonly number[])[]
  readonly nextReadyAt: number | undefined
  /** A claim of this number was made before. */
  readonly known: boolean
}

/** How many runs to claim from each shard: highest priority first, then the oldest ready instant, then the oldest run. */
export async function peekReady(
  server: Server,
  { instance, claim, limit }: { readonly instance: string; readonly claim: number; readonly limit: number },
  asked: readonly Asked[],
): Promise<ReadyPeek> {
  const args = [word(instance), claim, limit, ...asked.flatMap(({ name, limit: most }) => [word(name), most])]
  const read = (await everywhere(server, (shard) => server.read(READY, shard, args))).map(listOf)
  const now = Math.max(...read.map((reply) => Number(reply[0])))
  const nexts = read.map((reply) => ({ now: Number(reply[0]), next: floorOf(reply[2]) }))
  const candidates = read.flatMap((reply, shard) => textsOf(reply[1]).map((text) => ({ shard, ...toReady(text) })))
  candidates.sort((one, other) => claimOrder(one, other) || one.shard - other.shard)
  const shares = read.map(() => asked.map(() => 0))
  const left = asked.map((each) => each.limit)
  let taken = 0
  for (const { shard, target } of candidates) {
    const share = shares[shard]
    if (taken >= limit || share === undefined || (left[target] ?? 0) <= 0) continue
    left[target] = (left[target] ?? 0) - 1
    share[target] = (share[target] ?? 0) + 1
    taken += 1
  }
  return {
    now,
    shares,
    nextReadyAt: firstNext(now, nexts),
    known: read.some((reply) => Number(reply[3]) === 1),
  }
}

function toReady(text: string): Ready {
  const [target, priority, readyAt, number = ''] = text.split(' ')
  return { target: Number(target), priority: Number(priority), readyAt: Number(readyAt), number }
}

function claimOrder(one: Ready, other: Ready): number {
  if (one.priority !== other.priority) return other.priority - one.priority
  if (one.readyAt !== other.readyAt) return one.readyAt - other.readyAt
  return one.number < other.number ? -1 : one.number > other.number ? 1 : 0
}

const ENDED = script(`
local kept = redis.call('ZCARD', KEYS[1] .. 'ended')
local scores = {}
if ARGV[1] ~= '0' then
  local oldest = redis.call('ZRANGE', KEYS[1] .. 'ended', 0, ARGV[1] - 1, 'WITHSCORES')
  for at = 2, #oldest, 2 do scores[#scores + 1] = oldest[at] end
end
return { kept, scores }`)

/** How many ended runs each shard may keep, so that the newest of all are kept. */
export async function peekEnded(server: Server, maxRuns: number, limit: number): Promise<number[]> {
  const counted = (await everywhere(server, (shard) => server.read(ENDED, shard, [0]))).map(listOf)
  const kept = counted.map((reply) => Number(reply[0]))
  const tooMany = kept.reduce((sum, count) => sum + count, 0) - maxRuns
  // Not what each has now: runs that end before it is pruned would push others out.
  if (tooMany <= 0) return kept.map(() => maxRuns)
  const most = Math.min(tooMany, limit)
  const read = (await everywhere(server, (shard) => server.read(ENDED, shard, [most]))).map(listOf)
  const scores = read.map((reply) => textsOf(reply[1]).map(Number))
  const goes = sharesOf(scores, most, (one, other) => one - other)
  return kept.map((count, shard) => count - (goes[shard] ?? 0))
}
