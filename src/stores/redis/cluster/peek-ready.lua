-- cluster/peek-ready.lua: answers the first runs of a shard that are ready to be claimed (peek.ts). It reserves nothing.
-- Keys: queue, queue-priorities, instance-claims.
local found, nextReadyAt = {}, nil
for place, target in ipairs(given.targets) do
  local most = math.min(given.limit, target.limit)
  for _, priority in ipairs(redis.call('ZRANGE', key('queue-priorities', target.name), 0, -1)) do
    local queue = key('queue', priority, target.name)
    local members = most > 0 and redis.call('ZRANGEBYSCORE', queue, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most) or {}
    for at = 1, #members, 2 do
      found[#found + 1] =
        { target = place - 1, priority = tonumber(priority), readyAt = tonumber(members[at + 1]), number = members[at] }
    end
    local later = redis.call('ZRANGEBYSCORE', queue, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if later[2] then nextReadyAt = math.min(nextReadyAt or math.huge, tonumber(later[2])) end
  end
end
local known = redis.call('ZSCORE', key('instance-claims', given.instance), given.claim) and true or false
return reply({ now = now, ready = found, nextReadyAt = nextReadyAt, known = known })
