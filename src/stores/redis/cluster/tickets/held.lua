-- include: locks/permits
-- cluster/tickets/held.lua: which tickets still hold their keys with their tokens (tickets.ts). It only looks.
local held = {}
for at, each in ipairs(given.tickets) do
  local ticket = runs.load(each.ticket)
  local isRunning = ticket and ticket.state == 'running' and ticket.token == each.token
  local lease = isRunning and permits.leaseOfRun(permits.of(ticket.key), each.ticket)
  held[at] = lease and int(lease.token) == each.token or false
end
return reply({ held = held })
