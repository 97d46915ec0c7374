-- include: records/record-text
-- records/prune.lua: deletes records that have expired (contract: runs.prune).
local expired = redis.call('ZRANGEBYSCORE', key('record-expiry'), '-inf', now, 'LIMIT', 0, given.limit)
for _, member in ipairs(expired) do records.forget(unpack(cjson.decode(member))) end
return reply({ forgotten = #expired })
