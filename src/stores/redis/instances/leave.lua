-- include: locks/pass-on
-- instances/leave.lua: an instance says goodbye, and what it still runs is taken over at once (contract: instances.leave).
-- Keys: instance, instances, instance-running, instance-claims, and those of each run. Repeating it finds nothing.
if not instances.load(given.instance) then return reply({}) end
local running = redis.call('ZRANGE', key('instance-running', given.instance), 0, -1)
for _, run in ipairs(runs.loadMany(running)) do transitions.takeOver(run, false) end
redis.call('DEL', key('instance', given.instance), key('instance-claims', given.instance))
redis.call('ZREM', key('instances'), given.instance)
commit()
return reply({})
