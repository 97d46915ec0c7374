-- cluster/agree-on-shards.lua: the number of shards, written down when a store is first opened. Keys: meta, field `shards`.
-- Answers the channel of hints, too: a client may put a prefix of its own before every key.
redis.call('HSETNX', key('meta'), 'shards', given.shards)
return reply({ shards = tonumber(redis.call('HGET', key('meta'), 'shards')), channel = string.match(KEYS[1], '^(.*){') .. 'wakes' })
