-- instances/declare.lua: writes down a set of declarations (contract: instances.declare). The first time counts.
-- Keys: declared-sets (a line with when it was first seen, then the set as JSON), declared-alive.
if redis.call('HSETNX', key('declared-sets', given.app), given.hash, int(now) .. '\n' .. given.set) == 1 then
  redis.call('HSET', key('declared-alive', given.app), given.hash, int(now))
end
return reply({})
