-- include: schema/sets
-- The queues in which claims find ready runs: a sorted set for each target and priority, scored by when its runs may
-- start. Runs that are not due yet are in it, too.
local queues = {}
whenUsed(queues, function()
  local known = {}

  -- How many runs were added. When this grows during a claim, the claim reads its queues again.
  queues.additions = 0

  function queues.add(run)
    local name = key('queue', run.priority, run.target)
    sets.put(name, run.number, int(run.readyAt))
    queues.additions = queues.additions + 1
    if known[name] then return end
    known[name] = true
    redis.call('ZADD', key('queue-priorities', run.target), -run.priority, run.priority)
    redis.call('ZADD', key('queue-targets'), 0, run.target)
  end

  function queues.remove(run) sets.remove(key('queue', run.priority, run.target), run.number) end

  function queues.of(targets)
    local found = {}
    for _, target in ipairs(targets) do
      for _, priority in ipairs(redis.call('ZRANGE', key('queue-priorities', target.name), 0, -1)) do
        found[#found + 1] =
          { name = key('queue', priority, target.name), priority = tonumber(priority), target = target.name }
      end
    end
    return found
  end

  -- Returns the first runs of each queue that may start now, unsorted: at most `limit` from a queue, and no more of a
  -- target than `left` allows.
  function queues.first(all, left, limit)
    sets.save()
    local found = {}
    for _, queue in ipairs(all) do
      local most = math.min(limit, left[queue.target])
      local members = most > 0 and redis.call('ZRANGEBYSCORE', queue.name, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most) or {}
      for at = 1, #members, 2 do
        found[#found + 1] =
          { number = members[at], readyAt = tonumber(members[at + 1]), priority = queue.priority, target = queue.target }
      end
    end
    return found
  end

  -- When the next run that is not due yet may start.
  function queues.nextReadyAt(all)
    local nextReadyAt
    for _, queue in ipairs(all) do
      local later = redis.call('ZRANGEBYSCORE', queue.name, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if later[2] then nextReadyAt = math.min(nextReadyAt or math.huge, tonumber(later[2])) end
    end
    return nextReadyAt
  end

  -- Removes empty queues from the indexes.
  function queues.tidy(all)
    for _, queue in ipairs(all) do
      if redis.call('EXISTS', queue.name) == 0 then
        redis.call('ZREM', key('queue-priorities', queue.target), queue.priority)
        if redis.call('EXISTS', key('queue-priorities', queue.target)) == 0 then
          redis.call('ZREM', key('queue-targets'), queue.target)
        end
      end
    end
  end
end)
