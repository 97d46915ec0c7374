-- include: cluster/tickets/requests
-- include: runs/transitions
-- The only place that gives a freed permit to the next: a name's permits to the locks and then the runs that wait for it, a
-- schedule to the oldest of its waiting runs. Every script that frees something ends with `commit`.
local passOn = {}
whenUsed(passOn, function()
  function passOn.dropWaiter(lock, holder)
    redis.call('HDEL', key('lock-waiter-terms', lock.name), holder)
    return redis.call('ZREM', key('lock-waiters', lock.name), holder) == 1
  end

  -- Gives free permits to the locks that wait, oldest first, and tells each of them. A lease lasts until the waiter's place
  -- would have expired: only asking again proves that the waiter still lives. Places that have expired are gone.
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

  -- Makes as many waiting runs ready as there are free permits, oldest first. One that waits behind an older run which is
  -- ready and not claimed yet stays where it is: it could not start.
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

  -- Locks come before runs: their callers are waiting for the answer.
  function passOn.permitsOf(lock)
    passOn.toLocks(lock)
    passOn.toRuns(lock)
    if not lock.waiters and not lock.runs then redis.call('SREM', key('lock-blocked'), lock.name) end
  end

  -- When all unfinished runs of a schedule wait, the oldest becomes ready.
  function passOn.turnOf(schedule)
    local number = overlap.firstWaiting(schedule)
    if not number or overlap.firstEngaged(schedule) then return end
    local run = runs.load(number)
    if run then transitions.makeReady(run) else redis.call('ZREM', key('schedule-waiting', schedule), number) end
  end
end)

-- Ends a script: passes on what it freed, as long as that frees more, and writes what it changed.
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
