-- schema/key-types.lua: the types of keys of the shard, in order, for belfry doctor. It only looks.
local keys, types = {}, {}
for at, name in ipairs(given.names) do
  keys[at] = key(name)
  types[at] = redis.call('TYPE', keys[at]).ok
end
return reply({ keys = keys, types = types })
