-- include: locks/pass-on
-- cluster/tickets/receive.lua: the messages of another shard's outbox to this one: tickets to end, tickets to make, and
-- runs whose ticket was skipped (tickets.ts). Each part is safe to repeat. Keys: runs, ticket-held, lines and locks of keys.

-- Tickets of runs that ended. A ticket of the run's last attempt is over; so is one that was claimed for an attempt that
-- never began.
for _, each in ipairs(given.unwanted) do
  local ticket = runs.load(each.ticket)
  local isOfLast = ticket and ticket.attempt == each.attempt
  local isOfNext = ticket and ticket.unconfirmed and ticket.attempt == each.attempt + 1
  if isOfLast or isOfNext then transitions.finish(ticket, 'cancelled') end
end

-- Makes a ticket, or brings it up to date. Answers the run that has the key, if the ticket needs a free key.
local function receive(each)
  local known = runs.load(each.ticket)
  local winner = not known and each.isChecked and keyLine.winner(each.key, each.permits, tonumber(each.readyAt))
  if winner then return { winner = winner } end
  if not known then
    local ticket = runs.add({ origin = 'ticket', keep = 'none', target = each.target, priority = each.priority, key = each.key,
      permits = each.permits, whenBusy = each.whenBusy, readyAt = tonumber(each.readyAt), startBy = tonumber(each.startBy),
      byDeadline = each.byDeadline, attempt = each.attempt }, '\nnull', each.ticket)
    if each.state == 'waiting' then transitions.makeWait(ticket, 'overlap') else transitions.makeReady(ticket) end
  elseif known.waitsFor == 'overlap' and each.state == 'ready' then transitions.makeReady(known)
  -- The attempt that has the key ended in the run's shard, and the run is ready for its next one.
  elseif known.state == 'running' and known.attempt == each.attempt then
    transitions.giveBack(known, tonumber(each.readyAt))
  end
  if each.state == 'waiting' then redis.call('ZADD', key('ticket-held'), now, each.ticket) end
  return {}
end

local received = {}
for at, each in ipairs(given.wanted) do received[at] = receive(each) end

for _, each in ipairs(given.skipped) do
  local run = runs.load(each.run)
  if run and run.state == 'ready' and run.keyShard then transitions.finish(run, 'skipped', { reason = each.reason }) end
end
commit()
return reply({ received = received })
