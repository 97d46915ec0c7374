/**
 * Forgetting. Runs, skips and finished schedules go by their age, runs also by their number; every kind has its oldest at
 * hand, so the cost is by what is forgotten. Names of leases expire by themselves; the walk over their index, a piece at
 * a time, clears away what they leave behind, and is as fast as they do.
 */
import type { PruneRequest } from '../../../core/store.js'
import { peekEnded } from '../cluster/peek.js'
import { everywhere } from '../cluster/shards.js'
import { runScript } from '../connection/script.js'
import type { Server } from '../connection/server.js'
import { pruneRecords } from '../records/records.js'
import { FORGET_SCHEDULE } from '../schedules/schedule-changes.js'

const NAMES = 200

const PRUNE = runScript(`${FORGET_SCHEDULE}
local maxAge, maxRuns, leaseAge, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local forgotten = 0

-- A server that is full refuses a script's first command if it could take memory, and none after it.
redis.call('HDEL', KEYS[1] .. 'meta', '-')

local function left() return limit - forgotten end

local function pruneRuns()
  local kept = redis.call('ZCARD', KEYS[1] .. 'ended')
  if left() <= 0 or kept == 0 then return end
  -- Most often nothing is to be forgotten, and the oldest tells.
  local ns = redis.call('ZRANGE', KEYS[1] .. 'ended', 0, 0)
  loadAll(ns)
  local oldest = runs[ns[1]]
  if oldest and tonumber(oldest.finishedAt) > now - maxAge and kept <= maxRuns then return end
  ns = redis.call('ZRANGE', KEYS[1] .. 'ended', 0, left() - 1)
  loadAll(ns)
  for _, n in ipairs(ns) do
    local r = runs[n]
    if r and tonumber(r.finishedAt) > now - maxAge and kept <= maxRuns then return end
    if r then forget(r) end
    unended[#unended + 1] = n
    kept, forgotten = kept - 1, forgotten + 1
  end
end

local function pruneSkips()
  if left() <= 0 then return end
  for _, place in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'skips', '-inf', now - maxAge, 'LIMIT', 0, left())) do
    local sched, member = string.match(place, '^([^ ]+) (.*)$')
    redis.call('ZREM', KEYS[1] .. 'sk:' .. sched, member)
    redis.call('ZREM', KEYS[1] .. 'skips', place)
    forgotten = forgotten + 1
  end
end

-- A finished schedule goes with its history, once nothing of it is unfinished.
local function pruneSchedules()
  for _, sched in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'fin', '-inf', now - maxAge, 'LIMIT', 0, 1000)) do
    if left() <= 0 then return end
    ripenLane(sched)
    if redis.call('ZCARD', KEYS[1] .. 'e:' .. sched) + redis.call('ZCARD', KEYS[1] .. 'w:' .. sched) == 0 then
      forgetSchedule(unescape(sched), sched)
      forgotten = forgotten + 1
    end
  end
end

-- Answers whether the name was only still in the index.
local function pruneName(each)
  local m = name(escape(each))
  for at = #m.holders, 1, -1 do
    local h = m.holders[at]
    -- Locks whose holders went away without a word.
    if h.run == '-' and h.expires <= now - leaseAge then
      removeHolder(m, h)
      forgotten = forgotten + 1
    end
  end
  if m.known then return false end
  redis.call('ZREM', KEYS[1] .. 'names', each)
  forgotten = forgotten + 1
  return true
end

-- Goes on from where it was the last time; and for as long as many of those that it meets have expired.
local function pruneNames()
  local from, found, gone = redis.call('HGET', KEYS[1] .. 'meta', 'swept'), nil, nil
  repeat
    found = redis.call('ZRANGEBYLEX', KEYS[1] .. 'names', from and '(' .. from or '-', '+', 'LIMIT', 0, ${NAMES})
    gone = 0
    for _, each in ipairs(found) do
      if left() <= 0 then break end
      if pruneName(each) then gone = gone + 1 end
      from = each
    end
  until left() <= 0 or #found < ${NAMES} or gone < ${NAMES} / 4
  if from and #found == ${NAMES} then redis.call('HSET', KEYS[1] .. 'meta', 'swept', from)
  else redis.call('HDEL', KEYS[1] .. 'meta', 'swept') end
end

local function pruneDedupes()
  if left() <= 0 then return end
  for _, field in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'dt', '-inf', now, 'LIMIT', 0, left())) do
    redis.call('ZREM', KEYS[1] .. 'dt', field)
    redis.call('HDEL', KEYS[1] .. 'dd', field)
    forgotten = forgotten + 1
  end
end

pruneRuns()
pruneSkips()
pruneSchedules()
pruneNames()
pruneDedupes()
finish()
return { forgotten, wakes }`)

export async function pruneHistory(server: Server, request: PruneRequest): Promise<number> {
  const forgotten = await pruneShards(server, request)
  return forgotten + (await pruneRecords(server, request.limit - forgotten))
}

async function pruneShards(server: Server, request: PruneRequest): Promise<number> {
  const { maxRuns, limit } = request
  if (server.shards === 1) return pruneShard(server, 0, request)
  const kept = await peekEnded(server, maxRuns, limit)
  const share = Math.ceil(limit / server.shards)
  const counts = await everywhere(server, (shard) =>
    pruneShard(server, shard, { ...request, maxRuns: kept[shard] ?? maxRuns, limit: share }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

async function pruneShard(server: Server, shard: number, request: PruneRequest): Promise<number> {
  const { maxAgeMs, maxRuns, leaseAgeMs, limit } = request
  const [forgotten] = await server.write(PRUNE, shard, [maxAgeMs, maxRuns, leaseAgeMs, limit])
  return Number(forgotten)
}
