-- include: locks/pass-on
-- cluster/tickets/receive.lua: receives the messages from another shard's outbox: tickets to end, tickets to make, and
-- runs whose tickets were skipped (tickets.ts). Each part is safe to repeat.
-- Keys: runs, ticket-held, the key-* sets and locks of keys.

-- Ends tickets whose runs have ended. Such a ticket has the number of the run's last attempt, or the next number if it
-- was claimed for an attempt that never started.
for _, each in ipairs(given.unwanted) do
  local ticket = runs.load(each.ticket)
  local isOfLast = ticket and ticket.attempt == each.attempt
  local isOfNext = ticket and ticket.unconfirmed and ticket.attempt == each.attempt + 1
  if isOfLast or isOfNext then transitions.finish(ticket, 'cancelled') end
end

-- Makes a ticket, or updates it if it exists. If the ticket is made only when the key is free, and the key is busy,
-- returns the run that has the key.
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
  -- The attempt that holds the key has ended in the run's shard, where the run is ready for its next attempt. So the
  -- ticket frees the key and is ready, too.
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
