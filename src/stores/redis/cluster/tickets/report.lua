-- include: locks/pass-on
-- cluster/tickets/report.lua: an instance reports what became of the runs of its tickets (tickets.ts). A run has started; or
-- it could not start yet, and its ticket can be claimed again, at once or later; or it needs no start or was settled, and
-- its ticket is over. Keys: runs, key-skipping, lines and locks of keys. Safe to repeat: a ticket with another token belongs to
-- another attempt.

-- How many copies that waited to learn whether their key is busy one script skips. The others run when the key is free.
local MOST_COPIES = 1000

local function confirm(ticket)
  ticket.unconfirmed = nil
  runs.change(ticket)
  local lock = permits.of(ticket.key)
  if tickets.mayBeFree(lock) or not permits.isBusy(lock, ticket.permits) then return end
  for _, number in ipairs(redis.call('SRANDMEMBER', key('key-skipping', ticket.key), MOST_COPIES)) do
    local copy = runs.load(number)
    if copy and copy.skipsIfBusy then transitions.finish(copy, 'skipped', { reason = 'busy' })
    else redis.call('SREM', key('key-skipping', ticket.key), number) end
  end
end

for _, each in ipairs(given.tickets) do
  local ticket = runs.load(each.ticket)
  if ticket and ticket.state == 'running' and ticket.token == each.token then
    if each.hasStarted then
      -- A confirmation may arrive late, from an old connection, when the run is about to end or has ended.
      if ticket.unconfirmed and not ticket.isEnding then confirm(ticket) end
    elseif each.againInMs then transitions.unclaim(ticket, math.max(ticket.readyAt, now + each.againInMs))
    else transitions.finish(ticket, 'cancelled') end
  end
end
commit()
return reply({ skipped = isUsed(transitions) and transitions.skipped or {} })
