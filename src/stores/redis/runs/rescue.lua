-- include: locks/pass-on
-- runs/rescue.lua: declares instances dead whose lease has run out, and takes over what they ran (contract: runs.rescue).
-- It also passes on names whose holders' time is over: such a lock runs out without a script.
-- Keys: instances, instance, instance-running, instance-claims, ticket-held, lock-blocked, and those of each run.
-- Crash or lost reply: the next rescue does the rest.

-- How many instances, and how many names and tickets, one script looks at.
local MOST_INSTANCES, MOST_NAMES = 20, 500
-- Four times as long as tickets that wait are left alone.
local FORGOTTEN_MS = 120000

local rescued, lost, ticketsTaken = 0, 0, 0

local function isFull() return rescued + lost + ticketsTaken >= given.limit end

-- Answers whether nothing more is left of it here.
local function takeOverRunsOf(id)
  local numbersOfRuns, left = redis.call('ZRANGE', key('instance-running', id), 0, -1), 0
  for _, number in ipairs(numbersOfRuns) do
    local isTicket = permits.isTicket(number)
    -- A ticket's run may be trusted a little longer in its own shard.
    if isFull() or (isTicket and instances.ticketsExpireAt(id) > now) then left = left + 1
    else
      local run = runs.load(number)
      local outcome = run and transitions.takeOver(run, true)
      if not run then sets.remove(key('instance-running', id), number)
      -- What a ticket stands for is counted in the shard of its run.
      elseif isTicket then ticketsTaken = ticketsTaken + 1
      elseif outcome == 'lost' then lost = lost + 1
      else rescued = rescued + 1 end
    end
  end
  return left == 0
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('instances'), '-inf', now, 'LIMIT', 0, MOST_INSTANCES)) do
  -- Dead here is dead everywhere: also where nothing more is to be taken over in this step.
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

-- Tickets of runs that wait are sent again and again: one that is not has no run any more.
for _, number in ipairs(redis.call('ZRANGEBYSCORE', key('ticket-held'), '-inf', now - FORGOTTEN_MS, 'LIMIT', 0, MOST_NAMES)) do
  local ticket = runs.load(number)
  if ticket and ticket.waitsFor == 'overlap' then transitions.finish(ticket, 'cancelled') end
  redis.call('ZREM', key('ticket-held'), number)
end

for _, name in ipairs(redis.call('SRANDMEMBER', key('lock-blocked'), MOST_NAMES)) do permits.mayBeFree(name) end
commit()
return reply({ rescued = rescued, lost = lost })
