-- cluster/agree-on-shards.lua: stores the number of shards when a store is first opened, and returns the stored number.
-- Also returns the channel of hints as the server sees it, because a client may put a prefix of its own before every
-- key.
-- Keys: meta, field `shards`.
redis.call('HSETNX', key('meta'), 'shards', given.shards)
return reply({ shards = tonumber(redis.call('HGET', key('meta'), 'shards')), channel = string.match(KEYS[1], '^(.*){') .. 'wakes' })
