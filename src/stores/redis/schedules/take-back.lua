-- include: runs/transitions
-- What a change of a schedule does to recorded ticks that were never claimed. Ticks in the future are removed, as if
-- they had never been recorded. Ticks that are already due are skipped.
local takeBack = {}
whenUsed(takeBack, function()
  function takeBack.unclaimed(schedule)
    local found = {}
    for _, run in ipairs(overlap.unfinished(schedule)) do
      if run.attempt == 0 and run.origin == 'tick' then found[#found + 1] = run end
    end
    table.sort(found, function(one, other) return one.number < other.number end)
    return found
  end

  -- The unclaimed ticks as one text. A decision is based on it, and write.lua compares it before it writes the
  -- decision.
  function takeBack.unclaimedText(schedule)
    local words = {}
    for at, run in ipairs(takeBack.unclaimed(schedule)) do words[at] = run.number .. ':' .. int(run.tick) end
    return table.concat(words, ' ')
  end

  function takeBack.apply(schedule, change)
    for _, range in ipairs(change.unrecorded) do
      transitions.addSkip(schedule, range.from, range.to, range.count, range.reason)
    end
    for _, number in ipairs(change.remove) do
      local run = runs.load(number)
      if run then transitions.unrecord(run) end
    end
    for _, number in ipairs(change.skip) do
      local run = runs.load(number)
      if run then transitions.finish(run, 'skipped', { reason = change.reason }) end
    end
  end

  -- Cancels ticks that wait for their next attempt, because their schedule is removed.
  function takeBack.cancelBetweenAttempts(schedule)
    for _, run in ipairs(overlap.unfinished(schedule)) do
      if run.attempt > 0 and run.state ~= 'running' and run.origin == 'tick' then transitions.finish(run, 'cancelled') end
    end
  end

  function takeBack.forgetSchedule(id)
    redis.call('HDEL', key('schedules'), id)
    redis.call('ZREM', key('schedule-ids'), id)
    redis.call('ZREM', key('schedule-due'), id)
    redis.call('ZREM', key('schedules-unstamped'), id)
    redis.call('ZREM', key('schedules-finished'), id)
  end
end)
