/**
 * Starting runs. The queues of all targets that were asked for are read from their beginning, in the order of claiming.
 * A plain run costs no command of its own: what is taken from a queue, written to runs and noted as running is done by
 * one command each for the whole claim.
 */
import type { Run } from '../../../core/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../../core/store.js'
import { type Asked, firstNext, peekReady } from '../cluster/peek.js'
import { startTickets } from '../cluster/tickets.js'
import { runScript } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { BUNDLES } from '../lua/bundles.js'
import { START_RUN } from '../lua/start-run.js'
import { numberOf, word } from '../schema/words.js'
import { isTicket, RUN_LINES, runId, runOf, toRun } from './run-codec.js'

/** How many runs one script looks at, at the most, that cannot start after all. */
const MAX_STEPS = 2_000

export const CLAIM = runScript(`${BUNDLES}
local inst, claim, limit, floor = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local queues, left = {}, {}
for at = 5, #ARGV, 2 do
  local target = ARGV[at]
  left[target] = tonumber(ARGV[at + 1])
  for _, prio in ipairs(redis.call('ZRANGE', KEYS[1] .. 'p:' .. target, 0, -1)) do
    queues[#queues + 1] = { key = KEYS[1] .. 'q:' .. prio .. ':' .. target, prio = tonumber(prio), target = target }
  end
end

local started, taken, steps, more = {}, {}, 0, false
-- The token of every run that had none.
local first = nextToken(0, floor)
local firstText = int(first)

${START_RUN}

-- The first of every queue, in the order of claiming, and their texts.
local texts = {}
local function candidates()
  local found = {}
  for _, queue in ipairs(queues) do
    local most = math.min(limit - #started, left[queue.target])
    if most > 0 then
      local members = redis.call('ZRANGEBYSCORE', queue.key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
      for at = 1, #members, 2 do
        found[#found + 1] = { n = members[at], readyAt = tonumber(members[at + 1]), prio = queue.prio, queue = queue }
      end
    end
  end
  if #queues > 1 then
    table.sort(found, function(one, other)
      if one.prio ~= other.prio then return one.prio > other.prio end
      if one.readyAt ~= other.readyAt then return one.readyAt < other.readyAt end
      return one.n < other.n
    end)
  end
  local ns = {}
  for at = 1, math.min(#found, limit - #started) do ns[at] = found[at].n end
  eachText(ns, function(n, text) texts[n] = text end)
  return found
end

local function startRuns()
  repeat
    more, queueChanged = false, false
    for _, candidate in ipairs(candidates()) do
      if #started >= limit or steps >= ${MAX_STEPS} then break end
      local queue = candidate.queue
      if left[queue.target] > 0 then
        local n = candidate.n
        local text = runs[n] == nil and texts[n]
        local r = text and startFresh(n, text, queue.key)
        local isFresh = r
        if not r then r = text and parse(n, text) or load(n) end
        if not r then
          redis.call('ZREM', queue.key, n)
          more = true
        elseif isFresh or start(r, queue.key) then
          started[#started + 1] = r
          left[queue.target] = left[queue.target] - 1
        else
          steps = steps + 1
          more = true
        end
        if queueChanged then
          more = true
          break
        end
      end
    end
    for key, ns in pairs(taken) do batch('ZREM', key, ns) end
    taken = {}
  until not more or #started >= limit or steps >= ${MAX_STEPS}
end

-- The reply to this claim was lost: the answer is what it gave, as far as it is still this instance's.
local function answerAgain()
  local running = redis.call('HGETALL', KEYS[1] .. 'ir:' .. inst)
  for at = 1, #running, 2 do
    local r = string.match(running[at + 1], '^[^ ]+') == claim and load(running[at])
    if r then started[#started + 1] = r end
  end
end

local info = redis.call('GET', KEYS[1] .. 'i:' .. inst)
if info and not redis.call('HGET', KEYS[1] .. 'meta', 'frozen') then
  local expires, dead, settled = string.match(info, '^(%d+) (%d) ([^ ]+)')
  if dead == '0' and tonumber(expires) > now then
    if tonumber(claim) <= tonumber(settled) or redis.call('ZADD', KEYS[1] .. 'ic:' .. inst, 'NX', claim, claim) == 0 then answerAgain()
    else startRuns() end
  end
end
local answer = {}
for at, r in ipairs(started) do
  r.text = r.text or textOf(r)
  answer[2 * at - 1], answer[2 * at] = r.n, r.text
end
finish()

local nextReadyAt
for _, queue in ipairs(queues) do
  local later = redis.call('ZRANGEBYSCORE', queue.key, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if later[2] then nextReadyAt = math.min(nextReadyAt or math.huge, tonumber(later[2]))
  elseif redis.call('EXISTS', queue.key) == 0 then
    redis.call('ZREM', KEYS[1] .. 'p:' .. queue.target, queue.prio)
    if redis.call('EXISTS', KEYS[1] .. 'p:' .. queue.target) == 0 then redis.call('ZREM', KEYS[1] .. 'targets', queue.target) end
  end
end
if steps >= ${MAX_STEPS} then nextReadyAt = now end
return { int(now), bundles(answer), nextReadyAt and int(nextReadyAt) or '-', wakes }`)

export async function claimRuns(server: Server, request: ClaimRequest): Promise<ClaimResult> {
  const asked = [
    ...request.jobs.map(({ name, limit }) => ({ name: `job:${name}`, limit })),
    ...request.sinks.map(({ name, limit }) => ({ name: `sink:${name}`, limit })),
  ]
  return server.shards === 1 ? claimShard(server, 0, request, asked) : claimAcross(server, request, asked)
}

async function claimShard(
  server: Server,
  shard: number,
  request: ClaimRequest,
  asked: readonly Asked[],
): Promise<ClaimResult> {
  const { instance, claim, limit, floor } = request
  const targets = asked.flatMap(({ name, limit: most }) => [word(name), most])
  const [now, texts, next] = await server.write(CLAIM, shard, [word(instance), claim, limit, floor, ...targets])
  const nextReadyAt = numberOf(String(next))
  const runs = await claimedRuns(server, shard, request, textsOf(texts).join('\n'))
  return { now: Number(now), runs, ...(nextReadyAt === undefined ? {} : { nextReadyAt }) }
}

/** Looks at all shards, and claims from those that have what comes first. */
async function claimAcross(server: Server, request: ClaimRequest, asked: readonly Asked[]): Promise<ClaimResult> {
  const { now, shares, nextReadyAt, known } = await peekReady(server, request, asked)
  // A master whose clock is behind gives tokens by the others' clocks.
  const floor = Math.max(request.floor, now * 1_000)
  const claims = shares.map((share, shard) => {
    const limit = known ? 0 : share.reduce((sum, count) => sum + count, 0)
    if (limit === 0 && !known) return undefined
    const own = asked.map(({ name }, at) => ({ name, limit: known ? 0 : (share[at] ?? 0) }))
    return claimShard(server, shard, { ...request, limit, floor }, own)
  })
  const results = (await Promise.all(claims)).filter((result) => result !== undefined)
  const runs = results.flatMap((result) => result.runs).sort(inClaimOrder)
  const latest = Math.max(now, ...results.map((result) => result.now))
  const next = firstNext(latest, [
    { now, next: nextReadyAt },
    ...results.map((each) => ({ now: each.now, next: each.nextReadyAt })),
  ])
  return { now: latest, runs, ...(next === undefined ? {} : { nextReadyAt: next }) }
}

function inClaimOrder(one: Run, other: Run): number {
  if (one.priority !== other.priority) return other.priority - one.priority
  if (one.readyAt !== other.readyAt) return one.readyAt - other.readyAt
  return one.id < other.id ? -1 : 1
}

/** What was claimed here, and the runs of other shards whose tickets were: of each its number and its text. */
async function claimedRuns(server: Server, shard: number, request: ClaimRequest, text: string): Promise<ClaimedRun[]> {
  if (text === '') return []
  const lines = text.split('\n')
  const claimed: ClaimedRun[] = []
  const tickets: ClaimedRun[] = []
  for (let at = 0; at < lines.length; at += 1 + RUN_LINES) {
    const number = lines[at] ?? ''
    const run = runOf(runId(shard, number), lines, at + 1)
    if (isClaimed(run)) (isTicket(number) ? tickets : claimed).push(run)
  }
  if (tickets.length === 0) return claimed
  return [...claimed, ...(await startTickets(server, shard, request, tickets))]
}

/** Runs from a list of their numbers and texts. */
export function runsOf(shard: number, texts: readonly string[]): Run[] {
  const runs: Run[] = []
  for (let at = 0; at + 1 < texts.length; at += 2) runs.push(toRun(runId(shard, texts[at] ?? ''), texts[at + 1] ?? ''))
  return runs
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}
