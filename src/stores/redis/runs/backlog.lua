-- runs/backlog.lua: counts the runs that could start now, for each target and priority (contract: runs.backlog). ZCOUNT
-- does not visit the members, so even a long queue is counted completely. Keys: queue-targets, queue-priorities, queue.
local found = {}
for _, target in ipairs(redis.call('ZRANGE', key('queue-targets'), 0, given.most - 1)) do
  for _, priority in ipairs(redis.call('ZRANGE', key('queue-priorities', target), 0, given.most - 1)) do
    if #found >= given.most then break end
    local queue = key('queue', priority, target)
    local due = redis.call('ZCOUNT', queue, '-inf', now)
    if due > 0 then
      local oldest = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
      found[#found + 1] = { target = target, due = due, oldestReadyAt = tonumber(oldest) }
    end
  end
end
return reply({ now = now, queues = found })
