-- cluster/tickets/refused.lua: of runs that were just enqueued, those whose key was busy, with the run that has it: false for the
-- others. Keys: ticket-refused.
local winners = {}
for at, number in ipairs(given.runs) do winners[at] = redis.call('GET', key('ticket-refused', number)) end
return reply({ winners = winners })
