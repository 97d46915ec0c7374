-- runs/available.lua: returns how many runs of a key are due or executing (contract: runs.available). It only reads.
-- Keys: key-due, key-later, key-later-waiting.
local count = redis.call('ZCARD', key('key-due', given.key))
  + redis.call('ZCOUNT', key('key-later', given.key), '-inf', now)
  + redis.call('ZCOUNT', key('key-later-waiting', given.key), '-inf', now)
return reply({ count = count })
