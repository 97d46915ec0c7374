-- instances/declare.lua: records a set of declared schedules, and when it was first seen (contract: instances.declare).
-- A repetition changes nothing.
-- Keys: declared-sets (a line with when the set was first seen, then the set as JSON), declared-alive.
if redis.call('HSETNX', key('declared-sets', given.app), given.hash, int(now) .. '\n' .. given.set) == 1 then
  redis.call('HSET', key('declared-alive', given.app), given.hash, int(now))
end
return reply({})
