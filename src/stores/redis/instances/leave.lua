-- include: locks/pass-on
-- instances/leave.lua: an instance leaves, and its runs become ready again at once (contract: instances.leave).
-- Keys: instance, instances, instance-running, instance-claims, and those of each run. Reply lost: a repetition changes
-- nothing.
if not instances.load(given.instance) then return reply({}) end
local running = redis.call('ZRANGE', key('instance-running', given.instance), 0, -1)
for _, run in ipairs(runs.loadMany(running)) do transitions.takeOver(run, false) end
redis.call('DEL', key('instance', given.instance), key('instance-claims', given.instance))
redis.call('ZREM', key('instances'), given.instance)
commit()
return reply({})
