/** Taking a lock, with all that can be in the way. `leases.ts` says how locks work. */
import type { AcquireRequest, AcquireResult } from '../../core/lease.js'
import type { Server } from './connection.js'
import { TOLD, toLease } from './lease-text.js'
import { runScript } from './script.js'
import { word } from './token-text.js'

const ACQUIRE = runScript(`${TOLD}
local K, holder, ttl, permits, inst, floor, waitMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local m = name(K)
serveWaiters(m)

local function takePermit()
  local own = holderOf(m, holder)
  if own and own.released == '0' then
    if own.run == '-' then
      own.expires = now + ttl
      changeName(m)
    end
    return own
  end
  if isBusy(m, permits) then return nil end
  if own then removeHolder(m, own) end
  return grantLock(m, holder, ttl, permits, inst, floor)
end

-- Asking again keeps the place and prolongs it.
local function keepPlace()
  if waitMs <= 0 then return end
  if not m.waits then
    m.waits = true
    changeName(m)
    redis.call('SADD', KEYS[1] .. 'blocked', K)
  end
  redis.call('ZADD', KEYS[1] .. 'ww:' .. K, 'NX', int(nextSeq()), holder)
  redis.call('HSET', KEYS[1] .. 'wd:' .. K, holder, ttl .. ' ' .. permits .. ' ' .. inst .. ' ' .. int(floor) .. ' ' .. int(now + waitMs))
end

local lease, answer = takePermit(), nil
if lease then
  if m.waits then dropWaiter(m, holder) end
  answer = told(m, lease)
else
  keepPlace()
  local soonest
  for _, h in ipairs(m.holders) do
    local ends = endOf(h)
    if ends > now then soonest = math.min(soonest or ends, ends) end
  end
  answer = int(soonest or now)
end
touch(touchedNames, K)
finish()
return { int(now), lease and 1 or 0, answer, wakes }`)

export async function acquireLease(server: Server, shard: number, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
  const args = [word(name), word(holder), ttlMs, permits, word(instance), floor, waitMs]
  const [at, acquired, answer] = await server.write(ACQUIRE, shard, args)
  const now = Number(at)
  if (acquired !== 1) return { acquired: false, until: Number(answer), now }
  return { acquired: true, lease: toLease(shard, name, String(answer)), now }
}
