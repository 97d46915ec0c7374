-- include: instances/instance-text
-- instances/join.lua: an instance takes part from now on (contract: instances.join). One that lives already is extended.
-- Keys: instance, instances, instance-claims, jobs, declared-alive. Reply lost: joining again extends it.
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
