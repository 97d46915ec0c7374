-- cluster/agree-on-shards.lua: stores the number of shards when a store is first opened, and answers the stored number.
-- Answers the channel of hints, too: a client may put a prefix of its own before every key. Keys: meta, field `shards`.
redis.call('HSETNX', key('meta'), 'shards', given.shards)
return reply({ shards = tonumber(redis.call('HGET', key('meta'), 'shards')), channel = string.match(KEYS[1], '^(.*){') .. 'wakes' })
