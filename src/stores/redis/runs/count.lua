-- runs/count.lua: counts the members of an index that begin with a prefix: the unfinished runs of the shard, or its
-- schedules (contract: runs.count, schedules.count). Keys: runs-open or schedule-ids. It only reads.
local from, beyond = '[' .. given.prefix, '(' .. given.prefix .. '\255'
if given.prefix == '' then from, beyond = '-', '+' end
return reply({ count = redis.call('ZLEXCOUNT', key(given.index), from, beyond) })
