import type { RescueResult } from '../../../core/store.js'
import { deliverTickets } from '../cluster/deliver-tickets.js'
import { everywhere } from '../cluster/shards.js'
import { runScript } from '../connection/script.js'
import type { Server } from '../connection/server.js'

/** How many instances and how many names one script looks at. */
const INSTANCES = 20
const NAMES = 500
/** Four times as long as tickets that wait are left alone. */
const FORGOTTEN_MS = 120_000

const RESCUE = runScript(`
local limit, rescued, lost, tickets = tonumber(ARGV[1]), 0, 0, 0

local function declareDead(inst)
  local text = redis.call('GET', KEYS[1] .. 'i:' .. inst)
  if text then redis.call('SET', KEYS[1] .. 'i:' .. inst, (string.gsub(text, '^(%d+) %d ', '%1 1 ', 1))) end
end

for _, inst in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'instances', '-inf', now, 'LIMIT', 0, ${INSTANCES})) do
  -- Dead here is dead everywhere: also where nothing more is to be taken over in this step.
  declareDead(inst)
  local ns = redis.call('HKEYS', KEYS[1] .. 'ir:' .. inst)
  table.sort(ns)
  local taken = 0
  for _, n in ipairs(ns) do
    if rescued + lost + tickets >= limit then break end
    -- A ticket's run may be trusted a little longer in its own shard.
    local waits = isTicket(n) and ticketEnd(inst) > now
    local r = not waits and load(n)
    if not waits then taken = taken + 1 end
    if waits then
    elseif not r then redis.call('HDEL', KEYS[1] .. 'ir:' .. inst, n)
    else
      -- What a ticket stands for is counted in the shard of its run.
      local ended = takeOver(r, true) == 'lost'
      if isTicket(n) then tickets = tickets + 1
      elseif ended then lost = lost + 1
      else rescued = rescued + 1 end
    end
  end
  if taken == #ns then
    redis.call('DEL', KEYS[1] .. 'i:' .. inst, KEYS[1] .. 'ic:' .. inst)
    redis.call('ZREM', KEYS[1] .. 'instances', inst)
  end
end

-- Tickets of runs that wait are sent again and again: one that is not has no run any more.
for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'held', '-inf', now - ${FORGOTTEN_MS}, 'LIMIT', 0, ${NAMES})) do
  local r = load(n)
  if r and r.st == 'W' and r.wait == 'o' then endRun(r, 'C') end
  redis.call('ZREM', KEYS[1] .. 'held', n)
end

-- Locks run out without anybody doing anything: whoever waits for one of those is next.
for _, K in ipairs(redis.call('SRANDMEMBER', KEYS[1] .. 'blocked', ${NAMES})) do touch(touchedNames, K) end
finish()
return { rescued, lost, wakes }`)

/** Declares instances dead whose beats stopped, and takes over what they ran. Each shard goes by its own beats. */
export async function rescueRuns(server: Server, limit: number): Promise<RescueResult> {
  let [rescued, lost] = [0, 0]
  for (let shard = 0; shard < server.shards; shard += 1) {
    const reply = await server.write(RESCUE, shard, [Math.max(limit - rescued - lost, 0)])
    rescued += Number(reply[0])
    lost += Number(reply[1])
  }
  // What a crash left undelivered, or a failover lost.
  if (server.shards > 1) await everywhere(server, (shard) => deliverTickets(server, shard))
  return { rescued, lost }
}
