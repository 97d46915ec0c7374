-- include: cluster/tickets/requests
-- include: locks/permits
-- include: runs/loaded-runs
-- The runs of a key, in sets. Sets of due runs are sorted by number, and so by age. The key-later sets are sorted by when the
-- runs are due.
--
--   key-due             runs that are due or have begun: these count against the permits of the key
--   key-ready           of these, runs that are ready: no younger run may start before them
--   key-waiting         runs that wait for the key
--   key-skipping        of the waiting, runs that are skipped once the key is known to be busy
--   key-later           ready runs that are not due yet: `ripen` moves them to key-due and key-ready
--   key-later-waiting   waiting runs that are not due yet: `ripen` moves them to key-due
local keyLine = {}
whenUsed(keyLine, function()
  -- The age of a run. A ticket is as old as its run, because its number begins with the run's number.
  local function age(number) return string.sub(number, 1, 16) end

  -- The key of a run, if it is in this shard. A run whose key is in another shard is in none of these sets: its ticket
  -- is in the sets there.
  function keyLine.of(run) return not run.keyShard and run.key or nil end

  function keyLine.ripen(name)
    for _, set in ipairs({ 'key-later', 'key-later-waiting' }) do
      for _, number in ipairs(redis.call('ZRANGEBYSCORE', key(set, name), '-inf', now, 'LIMIT', 0, 1000)) do
        redis.call('ZREM', key(set, name), number)
        redis.call('ZADD', key('key-due', name), age(number), number)
        if set == 'key-later' then redis.call('ZADD', key('key-ready', name), age(number), number) end
      end
    end
  end

  function keyLine.count(name, number) redis.call('ZADD', key('key-due', name), age(number), number) end

  function keyLine.addReady(name, run)
    if run.readyAt <= now then
      keyLine.count(name, run.number)
      redis.call('ZADD', key('key-ready', name), age(run.number), run.number)
    elseif run.attempt == 0 then redis.call('ZADD', key('key-later', name), run.readyAt, run.number) end
  end

  function keyLine.removeReady(name, run)
    redis.call('ZREM', key('key-ready', name), run.number)
    if run.attempt == 0 then redis.call('ZREM', key('key-later', name), run.number) end
  end

  -- For a run that waits for its key, for its stamp, or for other runs of its schedule.
  function keyLine.addWaiting(name, run)
    if run.readyAt <= now then keyLine.count(name, run.number)
    else redis.call('ZADD', key('key-later-waiting', name), run.readyAt, run.number) end
    if run.waitsFor ~= 'key' then return end
    redis.call('ZADD', key('key-waiting', name), age(run.number), run.number)
    if run.skipsIfBusy then redis.call('SADD', key('key-skipping', name), run.number) end
    local lock = permits.of(name)
    if not lock.runs then
      lock.runs = true
      permits.change(lock)
      redis.call('SADD', key('lock-blocked'), name)
    end
  end

  function keyLine.removeWaiting(name, run)
    redis.call('ZREM', key('key-later-waiting', name), run.number)
    if run.waitsFor ~= 'key' then return end
    redis.call('ZREM', key('key-waiting', name), run.number)
    if run.skipsIfBusy then redis.call('SREM', key('key-skipping', name), run.number) end
  end

  -- For a run that has ended or was taken back.
  function keyLine.leave(name, run)
    redis.call('ZREM', key('key-due', name), run.number)
    permits.mayBeFree(name)
  end

  function keyLine.firstReady(name) return redis.call('ZRANGE', key('key-ready', name), 0, 0)[1] end

  function keyLine.firstWaiting(name) return redis.call('ZRANGE', key('key-waiting', name), 0, 0)[1] end

  -- Whether an older run of the key, ready or waiting, must start before this one.
  function keyLine.isBehind(name, number)
    local ready, waiting = keyLine.firstReady(name), keyLine.firstWaiting(name)
    return (ready ~= nil and ready < number) or (waiting ~= nil and waiting < number)
  end

  -- Returns the run that refuses a new one which is enqueued on condition that its key is free. The key is busy while
  -- as many runs are due or executing as it has permits. For a new run in the future, it is busy if another run is due
  -- at the same instant.
  function keyLine.winner(name, limit, readyAt)
    keyLine.ripen(name)
    if readyAt > now then
      return redis.call('ZRANGEBYSCORE', key('key-later', name), int(readyAt), int(readyAt), 'LIMIT', 0, 1)[1]
    end
    local due, holder = redis.call('ZCARD', key('key-due', name)), nil
    if due < limit then return nil end
    for _, lease in ipairs(permits.of(name).holders) do
      -- The run of this ticket may not have started, or may have ended. So the ticket is not counted, and if the key
      -- proves busy, the claim of the new run decides.
      if tickets.isUnsure(lease) then due = due - 1 else holder = holder or lease.run end
    end
    if due < limit then return nil end
    local first = holder or runs.older(keyLine.firstReady(name), keyLine.firstWaiting(name))
    if first then return first end
    -- No run holds the key, is ready or waits for it. So return the oldest run that waits for its retry, else the
    -- oldest that waits for other runs of its schedule.
    local rest = redis.call('ZRANGE', key('key-due', name), 0, 99)
    for _, run in ipairs(runs.loadMany(rest)) do
      if run.attempt > 0 then return run.number end
    end
    return rest[1]
  end
end)
