-- include: locks/pass-on
-- cluster/tickets/expect-end.lua: answers which tickets still hold their keys with their tokens. Only the runs of those may
-- be settled (tickets.ts). From now on such a ticket may outlive its run: until the ticket is finished, copies of the run
-- wait and are not skipped. Keys: runs, lock. Safe to repeat.
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
