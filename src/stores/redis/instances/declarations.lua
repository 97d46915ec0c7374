-- instances/declarations.lua: returns the sets of schedules that an app's instances declare (contract:
-- instances.declarations).
-- Keys: declared-sets, declared-alive. It only reads.
local sets, alive, found = redis.call('HGETALL', key('declared-sets', given.app)), {}, {}
local seen = redis.call('HGETALL', key('declared-alive', given.app))
for at = 1, #seen, 2 do alive[seen[at]] = tonumber(seen[at + 1]) end
for at = 1, #sets, 2 do
  local first, set = string.match(sets[at + 1], '^(%d+)\n(.*)$')
  found[#found + 1] = { firstSeenAt = tonumber(first), aliveAt = alive[sets[at]] or 0, set = set }
end
return reply({ sets = found })
