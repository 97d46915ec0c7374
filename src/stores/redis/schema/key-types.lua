-- schema/key-types.lua: returns the Redis types of some keys of the shard, in order, for belfry doctor. It only reads.
local keys, types = {}, {}
for at, name in ipairs(given.names) do
  keys[at] = key(name)
  types[at] = redis.call('TYPE', keys[at]).ok
end
return reply({ keys = keys, types = types })
