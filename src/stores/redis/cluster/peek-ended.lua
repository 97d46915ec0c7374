-- cluster/peek-ended.lua: returns how many ended runs a shard has, and the scores of the oldest ones (peek.ts). Scores
-- grow with the time of the end, so runs of different shards can be compared. It only reads. Keys: runs-ended.
local oldest = given.limit > 0 and redis.call('ZRANGE', key('runs-ended'), 0, given.limit - 1, 'WITHSCORES') or {}
local ended = {}
for at = 2, #oldest, 2 do ended[#ended + 1] = oldest[at] end
return reply({ kept = redis.call('ZCARD', key('runs-ended')), oldest = ended })
