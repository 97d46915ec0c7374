-- schedules/get.lua: one schedule (contract: schedules.get). Keys: schedules.
return reply({ text = redis.call('HGET', key('schedules'), given.id) or nil })
