-- runs/count.lua: how many runs of the shard have not ended and belong to owners with a prefix (contract: runs.count). Keys:
-- runs-open. It only looks.
local from, beyond = '[' .. given.prefix, '(' .. given.prefix .. '\255'
if given.prefix == '' then from, beyond = '-', '+' end
return reply({ count = redis.call('ZLEXCOUNT', key('runs-open'), from, beyond) })
