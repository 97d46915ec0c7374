-- cluster/peek-ended.lua: how many ended runs a shard has, and when the oldest of them ended, so that the newest of all
-- shards are kept. Keys: runs-ended.
local oldest = given.limit > 0 and redis.call('ZRANGE', key('runs-ended'), 0, given.limit - 1, 'WITHSCORES') or {}
local ended = {}
for at = 2, #oldest, 2 do ended[#ended + 1] = oldest[at] end
return reply({ kept = redis.call('ZCARD', key('runs-ended')), oldest = ended })
