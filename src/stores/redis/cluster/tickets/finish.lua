-- include: locks/pass-on
-- cluster/tickets/finish.lua: the runs of these tickets were settled, and their keys are free (tickets.ts). Safe to repeat:
-- a ticket with another token is at work for another attempt, which has the key by it. Keys: runs, lines and locks.
for _, each in ipairs(given.tickets) do
  local ticket = runs.load(each.ticket)
  if ticket and ticket.state == 'running' and ticket.token == each.token then transitions.finish(ticket, 'cancelled') end
end
commit()
return reply({})
