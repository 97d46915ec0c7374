-- include: instances/instance-text
-- instances/join.lua: an instance joins (contract: instances.join). If it is alive already, its lease is extended.
-- Keys: instance, instances, instance-claims, jobs, declared-alive. Reply lost: joining again extends the lease.
local instance = instances.load(given.instance)
if not instance or instance.dead then
  instance = { claimsSettled = -1, joinedAt = now, info = given.info }
  redis.call('DEL', key('instance-claims', given.instance))
end
instance.expiresAt, instance.beatAt = now + given.leaseMs, now
instance.app, instance.declarations = given.app, given.declarations
instances.save(given.instance, instance)
redis.call('ZADD', key('instances'), instance.expiresAt, given.instance)
for _, job in ipairs(given.jobs) do redis.call('HSET', key('jobs'), job.name, job.text) end
instances.noteDeclarations(instance)
return reply({ now = now })
