-- include: locks/pass-on
-- runs/rescue.lua: declares instances dead whose lease has expired, and takes over their runs (contract: runs.rescue).
-- It also passes on locks whose leases have expired, because no script runs at the moment of expiry.
-- Keys: instances, instance, instance-running, instance-claims, ticket-held, lock-blocked, and those of each run.
-- Crash or lost reply: the next rescue does the rest.

-- How many instances, and how many names and tickets, one script handles.
local MOST_INSTANCES, MOST_NAMES = 20, 500
-- A waiting ticket is ended if it was not sent again for this long.
local FORGOTTEN_MS = 120000

local rescued, lost, ticketsTaken = 0, 0, 0

local function isFull() return rescued + lost + ticketsTaken >= given.limit end

-- Takes over the runs of a dead instance. Returns true if none is left in this shard, so that the caller can delete the
-- instance here.
local function takeOverRunsOf(id)
  local numbersOfRuns, left = redis.call('ZRANGE', key('instance-running', id), 0, -1), 0
  for _, number in ipairs(numbersOfRuns) do
    local isTicket = permits.isTicket(number)
    -- A ticket is left for later while its run may still be trusted: the lease of the instance may expire later in the
    -- run's shard than here.
    if isFull() or (isTicket and instances.ticketsExpireAt(id) > now) then left = left + 1
    else
      local run = runs.load(number)
      local outcome = run and transitions.takeOver(run, true)
      if not run then sets.remove(key('instance-running', id), number)
      -- Only runs are counted as rescued. The run of a ticket is counted in its own shard.
      elseif isTicket then ticketsTaken = ticketsTaken + 1
      elseif outcome == 'lost' then lost = lost + 1
      else rescued = rescued + 1 end
    end
  end
  return left == 0
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('instances'), '-inf', now, 'LIMIT', 0, MOST_INSTANCES)) do
  -- Declares the instance dead first, even if its runs are left to a later step. Its next beat then fails: an instance
  -- that is dead in one shard is dead in all.
  local instance = instances.load(id)
  if instance then
    instance.dead = true
    instances.save(id, instance)
  end
  if takeOverRunsOf(id) then
    redis.call('DEL', key('instance', id), key('instance-claims', id))
    redis.call('ZREM', key('instances'), id)
  end
end

-- The shard of a waiting run sends the run's ticket again and again. If a ticket was not sent for long, its run no
-- longer exists.
for _, number in ipairs(redis.call('ZRANGEBYSCORE', key('ticket-held'), '-inf', now - FORGOTTEN_MS, 'LIMIT', 0, MOST_NAMES)) do
  local ticket = runs.load(number)
  if ticket and ticket.waitsFor == 'overlap' then transitions.finish(ticket, 'cancelled') end
  redis.call('ZREM', key('ticket-held'), number)
end

for _, name in ipairs(redis.call('SRANDMEMBER', key('lock-blocked'), MOST_NAMES)) do permits.mayBeFree(name) end
commit()
return reply({ rescued = rescued, lost = lost })
