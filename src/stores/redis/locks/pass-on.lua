-- include: cluster/tickets/requests
-- include: runs/transitions
-- The only place that passes on what became free. A free permit goes to the callers that wait for the lock, then to the
-- runs that wait for the key. The turn of a schedule goes to the oldest of its waiting runs. Every script that frees
-- something ends with `commit`.
local passOn = {}
whenUsed(passOn, function()
  function passOn.dropWaiter(lock, holder)
    redis.call('HDEL', key('lock-waiter-terms', lock.name), holder)
    return redis.call('ZREM', key('lock-waiters', lock.name), holder) == 1
  end

  -- Grants free permits to waiting callers, oldest first, and publishes a hint to each. Such a lease lasts until the
  -- caller's place would have expired, because only asking again proves that the caller is still alive. Expired places
  -- are removed.
  function passOn.toLocks(lock)
    while lock.waiters do
      local holder = redis.call('ZRANGE', key('lock-waiters', lock.name), 0, 0)[1]
      if not holder then
        lock.waiters = nil
        permits.change(lock)
        return
      end
      local terms = cjson.decode(redis.call('HGET', key('lock-waiter-terms', lock.name), holder) or '{"placeUntil":0}')
      if terms.placeUntil > now then
        if permits.isBusy(lock, terms.permits) then return end
        permits.grant(lock, terms.permits, { holder = holder, instance = terms.instance,
          acquiredAt = now,
          token = permits.nextToken(lock.lastToken, terms.floor), expiresAt = math.min(now + terms.ttlMs, terms.placeUntil) })
        redis.call('PUBLISH', string.match(KEYS[1], '^(.*){') .. 'wakes', cjson.encode({ holder = holder }))
      end
      passOn.dropWaiter(lock, holder)
    end
  end

  -- Makes as many waiting runs ready as there are free permits, oldest first. A run keeps waiting while an older run of
  -- the key is ready and not claimed yet, because it may not start before that one.
  function passOn.toRuns(lock)
    if not lock.runs then return end
    keyLine.ripen(lock.name)
    local before, taken = keyLine.firstReady(lock.name), permits.countLive(lock)
    while true do
      local number = keyLine.firstWaiting(lock.name)
      if not number then
        lock.runs = nil
        permits.change(lock)
        return
      end
      if before and number > before then return end
      local run = runs.load(number)
      if not run then redis.call('ZREM', key('key-waiting', lock.name), number)
      else
        if taken >= run.permits then return end
        taken = taken + 1
        transitions.makeReady(run)
      end
    end
  end

  -- Callers of `acquire` come before runs, because they wait for a reply.
  function passOn.permitsOf(lock)
    passOn.toLocks(lock)
    passOn.toRuns(lock)
    if not lock.waiters and not lock.runs then redis.call('SREM', key('lock-blocked'), lock.name) end
  end

  -- Makes the oldest waiting run of a schedule ready, if none of its runs is due, running or between attempts.
  function passOn.turnOf(schedule)
    local number = overlap.firstWaiting(schedule)
    if not number or overlap.firstEngaged(schedule) then return end
    local run = runs.load(number)
    if run then transitions.makeReady(run) else redis.call('ZREM', key('schedule-waiting', schedule), number) end
  end
end)

-- Ends a script. Passes on what it has freed, repeatedly, because passing on may free more. Then writes all changes.
local function commit()
  repeat
    local locks = isUsed(permits) and permits.takeFreed() or {}
    local schedules = isUsed(overlap) and overlap.takeFreed() or {}
    for _, lock in ipairs(locks) do passOn.permitsOf(lock) end
    for _, schedule in ipairs(schedules) do passOn.turnOf(schedule) end
  until #locks == 0 and #schedules == 0
  for _, changed in ipairs({ sets, runs, permits, numbers }) do
    if isUsed(changed) then changed.save() end
  end
end
