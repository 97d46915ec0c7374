-- cluster/tickets/refused.lua: for each run that was just enqueued, the run that has its key, if the key was busy; false
-- for the others. Keys: ticket-refused.
local winners = {}
for at, number in ipairs(given.runs) do winners[at] = redis.call('GET', key('ticket-refused', number)) end
return reply({ winners = winners })
