-- runs/count.lua: how many members of an index begin with a prefix: of the runs of the shard that have not ended, or of its
-- schedules (contract: runs.count, schedules.count). Keys: runs-open or schedule-ids. It only looks.
local from, beyond = '[' .. given.prefix, '(' .. given.prefix .. '\255'
if given.prefix == '' then from, beyond = '-', '+' end
return reply({ count = redis.call('ZLEXCOUNT', key(given.index), from, beyond) })
