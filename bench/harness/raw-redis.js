// @ts-check
/**
 * The least that a scheduler on Redis could do: a Lua loop that takes what is due and writes the same structures as Belfry
 * (run, queue, list of runs, the schedule's runs, cursor, due set), 1,000 at a time; and a lock that is set if absent and
 * deleted by a script that compares. No planning, no keys, no policies, nothing to wait for.
 */
import { createHash, randomUUID } from 'node:crypto'
import { redisClient } from './redis.js'

export const RAW_BATCH = 1_000

const RECORD = `
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
return #ids`

const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

/** @param {number} schedules */
export async function openRawRedis(schedules) {
  const client = await redisClient()
  const prefix = `raw${process.pid}.${randomUUID()}:`
  for (let first = 0; first < schedules; first += 1_000) {
    const ids = Array.from({ length: Math.min(1_000, schedules - first) }, (_, at) => `bench/${first + at}`)
    await client.sendCommand([
      'HSET',
      `${prefix}s`,
      ...ids.flatMap((id) => [id, `1700000000000 = = - {"t":{"every":3600000}}`]),
    ])
    await client.sendCommand(['ZADD', `${prefix}due`, ...ids.flatMap((id) => ['1700000000000', id])])
  }
  for (const text of [RECORD, UNLOCK]) await client.sendCommand(['SCRIPT', 'LOAD', text])
  const sha = (/** @type {string} */ text) => createHash('sha1').update(text).digest('hex')
  const [record, unlock] = [sha(RECORD), sha(UNLOCK)]
  let now = 1_700_000_000_000
  return {
    async recordTicks() {
      const next = now + 3_600_000
      for (let taken = RAW_BATCH; taken === RAW_BATCH; ) {
        const args = ['EVALSHA', record, '1', prefix, String(now), String(next)]
        taken = Number(await client.sendCommand(args))
      }
      now = next
    },
    /** @param {string} name */
    async lockAndUnlock(name) {
      const token = randomUUID()
      await client.sendCommand(['SET', prefix + name, token, 'NX', 'PX', '30000'])
      await client.sendCommand(['EVALSHA', unlock, '1', prefix + name, token])
    },
    async close() {
      await client.sendCommand(['EVAL', CLEAR, '0', `${prefix}*`])
      client.destroy()
    },
  }
}

const CLEAR = `local cursor = '0'
repeat
  local found = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = found[1]
  for _, key in ipairs(found[2]) do redis.call('UNLINK', key) end
until cursor == '0'`

/** @param {string} prefix */
export async function clearRedis(prefix) {
  const client = await redisClient()
  await client.sendCommand(['EVAL', CLEAR, '0', `${prefix}*`])
  client.destroy()
}
