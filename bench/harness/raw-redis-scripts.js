// @ts-check
/**
 * The minimum that scripts have to do with Belfry's data structures, without planning, keys, policies, waiting, or checks
 * for concurrent changes.
 */
import { createHash } from 'node:crypto'

export const RAW_BATCH = 1_000

/** @param {string} text */
function script(text) {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/**
 * Records one tick of each due schedule, at most `RAW_BATCH` a call. Writes the run, its entries in the queue, in the list of all
 * runs and in the schedule's list, and the schedule's cursor and next instant.
 */
export const RECORD = script(`
local P, call = KEYS[1], redis.call
local ids = call('ZRANGEBYSCORE', P .. 'due', '-inf', ARGV[1], 'LIMIT', 0, ${RAW_BATCH})
if #ids == 0 then return 0 end
local schedules = call('HMGET', P .. 's', unpack(ids))
local seq = tonumber(call('GET', P .. 'seq') or '1700000000000000')
local runs, queue, all, due, moved = {}, {}, {}, {}, {}
for at, id in ipairs(ids) do
  seq = seq + 1
  local n = string.format('%016.0f', seq)
  runs[2 * at - 1], runs[2 * at] = n, 'R - 0 0 0 - 0 0 0 ' .. ARGV[1] .. ' - ' .. ARGV[1] .. ' - - - ' .. ARGV[1] ..
    ' - - la\\nt 0 a job:noop ' .. id .. ' - - 0 - 0 - 0\\n\\n\\n\\nnull'
  queue[2 * at - 1], queue[2 * at] = ARGV[1], n
  all[2 * at - 1], all[2 * at] = n, n
  due[2 * at - 1], due[2 * at] = ARGV[2], id
  moved[2 * at - 1], moved[2 * at] = id, ARGV[2] .. string.sub(schedules[at], 14)
  call('ZADD', P .. 'e:' .. id, n, n)
end
call('HSET', P .. 'runs', unpack(runs))
call('ZADD', P .. 'q', unpack(queue))
call('ZADD', P .. 'all', unpack(all))
call('ZADD', P .. 'due', unpack(due))
call('HSET', P .. 's', unpack(moved))
call('SET', P .. 'seq', string.format('%.0f', seq))
return #ids`)

/** Enqueues runs. Writes each run and its entries in the queue and in the list of all runs. */
export const ENQUEUE = script(`
local P, at = KEYS[1], ARGV[1]
local seq = tonumber(redis.call('GET', P .. 'seq') or '1700000000000000')
local runs, queue, all = {}, {}, {}
for index = 1, tonumber(ARGV[2]) do
  seq = seq + 1
  local n = string.format('%016.0f', seq)
  runs[2 * index - 1], runs[2 * index] = n, 'R - 0 0 0 - 0 0 0 ' .. at .. ' - ' .. at .. ' - - - - - - pa\\ne 0 a job:noop - - - 0 - 0 - 0\\n\\n\\n\\nnull'
  queue[2 * index - 1], queue[2 * index] = at, n
  all[2 * index - 1], all[2 * index] = n, n
end
redis.call('HSET', P .. 'runs', unpack(runs))
redis.call('ZADD', P .. 'q', unpack(queue))
redis.call('ZADD', P .. 'all', unpack(all))
redis.call('SET', P .. 'seq', string.format('%.0f', seq))
return seq`)

/**
 * Claims the first runs of the queue: writes their token and start, adds them to the running set, and returns their
 * text.
 */
export const CLAIM = script(`
local P, at, token = KEYS[1], ARGV[1], ARGV[2]
local ns = redis.call('ZRANGEBYSCORE', P .. 'q', '-inf', at, 'LIMIT', 0, ${RAW_BATCH})
if #ns == 0 then return ns end
local runs, running, answer = {}, {}, {}
for index, text in ipairs(redis.call('HMGET', P .. 'runs', unpack(ns))) do
  local started = 'X - 1 0 0 ' .. token .. ' ' .. string.sub(text, 13)
  runs[2 * index - 1], runs[2 * index] = ns[index], started
  running[2 * index - 1], running[2 * index] = ns[index], token
  answer[2 * index - 1], answer[2 * index] = ns[index], started
end
redis.call('ZREM', P .. 'q', unpack(ns))
redis.call('HSET', P .. 'runs', unpack(runs))
redis.call('HSET', P .. 'ir', unpack(running))
return answer`)

/** Ends claimed runs that still have the given token: stores their end, or deletes them. */
export const END = script(`
local P, at, token, keep = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local ns, runs, ended = {}, {}, {}
for index = 4, #ARGV do ns[index - 3] = ARGV[index] end
for index, text in ipairs(redis.call('HMGET', P .. 'runs', unpack(ns))) do
  if string.sub(text, 11, 10 + #token) == token then
    runs[#runs + 1], ended[#ended + 1] = ns[index], at
    runs[#runs + 1], ended[#ended + 1] = 'S' .. string.sub(text, 2) .. at, ns[index]
  end
end
redis.call('HDEL', P .. 'ir', unpack(ns))
if keep == 'all' then
  redis.call('HSET', P .. 'runs', unpack(runs))
  redis.call('ZADD', P .. 'ended', unpack(ended))
else
  redis.call('HDEL', P .. 'runs', unpack(ns))
  redis.call('ZREM', P .. 'all', unpack(ns))
end
return #runs / 2`)

export const UNLOCK = script(
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
)

/** Puts schedules. Writes each text and its entries in the index by id and in the due set. */
export const PUT = script(`
local P, ids, due = KEYS[1], {}, {}
for index = 1, #ARGV, 2 do
  ids[index], ids[index + 1] = 0, ARGV[index]
  due[index], due[index + 1] = '1700000000000', ARGV[index]
end
redis.call('HSET', P .. 's', unpack(ARGV))
redis.call('ZADD', P .. 'ids', unpack(ids))
redis.call('ZADD', P .. 'due', unpack(due))
return #ids`)

export const CLEAR = `local cursor = '0'
repeat
  local found = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = found[1]
  for _, key in ipairs(found[2]) do redis.call('UNLINK', key) end
until cursor == '0'`
