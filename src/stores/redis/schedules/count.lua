-- schedules/count.lua: how many schedules of the shard have ids with a prefix (contract: schedules.count). Keys: schedule-ids. It
-- only looks.
local from, beyond = '[' .. given.prefix, '(' .. given.prefix .. '\255'
if given.prefix == '' then from, beyond = '-', '+' end
return reply({ count = redis.call('ZLEXCOUNT', key('schedule-ids'), from, beyond) })
