-- include: locks/pass-on
-- cluster/tickets/report.lua: an instance reports what happened to the runs of the tickets that it claimed
-- (tickets.ts). If the run has started, the ticket is confirmed. If the run cannot start yet, the ticket is ready to be
-- claimed again, at once or later. If the run needs no start or was settled, the ticket ends.
-- Keys: runs, key-skipping, the key-* sets and locks of keys. Safe to repeat: a ticket with another token belongs to
-- another attempt and is left alone.

-- One script skips at most this many runs that waited to learn whether their key is busy. The others run when the key
-- is free.
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
      -- An old connection may deliver this confirmation late, when the run is being settled or has ended. Then it must
      -- not count.
      if ticket.unconfirmed and not ticket.isEnding then confirm(ticket) end
    elseif each.againInMs then transitions.unclaim(ticket, math.max(ticket.readyAt, now + each.againInMs))
    else transitions.finish(ticket, 'cancelled') end
  end
end
commit()
return reply({ skipped = isUsed(transitions) and transitions.skipped or {} })
