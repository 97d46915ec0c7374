-- include: locks/pass-on
-- cluster/tickets/expect-end.lua: returns which tickets still hold their keys with the given tokens. Only the runs of
-- those tickets may be settled (tickets.ts). The script marks the tickets as unconfirmed, because each may now outlive
-- its run. Until the ticket has ended, a run that would be skipped because the key is busy waits instead.
-- Keys: runs, lock. Safe to repeat.
local held = {}
for at, each in ipairs(given.tickets) do
  local ticket = runs.load(each.ticket)
  local isRunning = ticket and ticket.state == 'running' and ticket.token == each.token
  local lease = isRunning and permits.leaseOfRun(permits.of(ticket.key), each.ticket)
  held[at] = lease and int(lease.token) == each.token or false
  if held[at] then
    ticket.unconfirmed, ticket.isEnding = true, true
    runs.change(ticket)
  end
end
commit()
return reply({ held = held })
