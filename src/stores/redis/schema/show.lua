-- schema/show.lua: returns the content of one key of this shard, for `belfry redis show`. It only reads, and only the
-- first few members. Those of a hash or a set are in no order.
local name = KEYS[1] .. given.key
local kind = redis.call('TYPE', name).ok
local members, size = {}, 1
if kind == 'string' then members[1] = { value = redis.call('GET', name) }
elseif kind == 'hash' and given.member then
  members[1] = { name = given.member, value = redis.call('HGET', name, given.member) or nil }
elseif kind == 'hash' then
  size = redis.call('HLEN', name)
  local found = redis.call('HSCAN', name, 0, 'COUNT', given.limit)[2]
  for at = 1, math.min(#found, given.limit * 2), 2 do members[#members + 1] = { name = found[at], value = found[at + 1] } end
elseif kind == 'zset' then
  size = redis.call('ZCARD', name)
  local found = redis.call('ZRANGE', name, 0, given.limit - 1, 'WITHSCORES')
  for at = 1, #found, 2 do members[#members + 1] = { name = found[at], value = found[at + 1] } end
elseif kind == 'set' then
  size = redis.call('SCARD', name)
  local found = redis.call('SSCAN', name, 0, 'COUNT', given.limit)[2]
  for at = 1, math.min(#found, given.limit) do members[at] = { name = found[at] } end
end
return reply({ kind = kind, size = size, members = members })
