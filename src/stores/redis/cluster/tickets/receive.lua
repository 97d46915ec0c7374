-- include: locks/pass-on
-- include: runs/key-winner
-- cluster/tickets/receive.lua: what another shard's outbox says to this one: tickets that go, tickets that come, and runs
-- whose ticket was skipped (tickets.ts). Each part is safe to repeat. Keys: runs, ticket-held, lines and locks of keys.

-- A ticket that was claimed for a run which is gone holds its key for nothing, whether its claimer finds out or died.
for _, each in ipairs(given.unwanted) do
  local ticket = runs.load(each.ticket)
  local isClaimed = ticket and ticket.state == 'running'
  local attempt = ticket and ticket.unconfirmed and each.attempt + 1 or each.attempt
  if ticket and (not isClaimed or ticket.unconfirmed) and ticket.attempt == attempt then
    transitions.finish(ticket, 'cancelled')
  end
end

-- Answers whether the ticket is there, or the run that has the key which it was to have if it was free.
local function receive(each)
  local known = runs.load(each.ticket)
  local winner = not known and each.isChecked and keyWinner(each.key, each.permits, tonumber(each.readyAt))
  if winner then return { isThere = false, winner = winner } end
  if not known then
    local ticket = runs.add({ origin = 'ticket', keep = 'none', target = each.target, priority = each.priority, key = each.key,
      permits = each.permits, whenBusy = each.whenBusy, readyAt = tonumber(each.readyAt), startBy = tonumber(each.startBy),
      attempt = each.attempt }, '\nnull', each.ticket)
    if each.state == 'waiting' then transitions.makeWait(ticket, 'overlap') else transitions.makeReady(ticket) end
  elseif known.waitsFor == 'overlap' and each.state == 'ready' then transitions.makeReady(known) end
  if each.state == 'waiting' then redis.call('ZADD', key('ticket-held'), now, each.ticket) end
  -- One of an earlier attempt has to be over first.
  return { isThere = not known or known.state ~= 'running' }
end

local received = {}
for at, each in ipairs(given.wanted) do received[at] = receive(each) end

for _, each in ipairs(given.skipped) do
  local run = runs.load(each.run)
  if run and run.state == 'ready' and run.keyShard then transitions.finish(run, 'skipped', { reason = each.reason }) end
end
commit()
return reply({ received = received })
