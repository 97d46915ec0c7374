-- include: runs/queues
-- cluster/peek-ready.lua: returns the first runs of a shard that are ready to be claimed (peek.ts). It only reads.
-- Keys: queue, queue-priorities, instance-claims.
local left = {}
for _, target in ipairs(given.targets) do left[target.name] = target.limit end
local all = queues.of(given.targets)
local known = redis.call('ZSCORE', key('instance-claims', given.instance), given.claim) and true or false
return reply({ now = now, ready = queues.first(all, left, given.limit), nextReadyAt = queues.nextReadyAt(all), known = known })
