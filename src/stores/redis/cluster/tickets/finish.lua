-- include: locks/pass-on
-- cluster/tickets/finish.lua: ends the tickets of settled runs, which frees their keys (tickets.ts). Safe to repeat: a
-- ticket with another token belongs to another attempt. Keys: runs, lines and locks.
for _, each in ipairs(given.tickets) do
  local ticket = runs.load(each.ticket)
  if ticket and ticket.state == 'running' and ticket.token == each.token then transitions.finish(ticket, 'cancelled') end
end
commit()
return reply({})
