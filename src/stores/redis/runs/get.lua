-- runs/get.lua: one run (contract: runs.get). Keys: runs.
return reply({ text = redis.call('HGET', key('runs'), given.number) or nil })
