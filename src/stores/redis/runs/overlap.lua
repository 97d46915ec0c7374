-- include: runs/loaded-runs
-- The runs of a schedule, in sets. Under an overlap policy they may have to wait for each other.
--
--   schedule-engaged   runs that are due, running or between attempts: others wait for these
--   schedule-waiting   runs that wait for the engaged ones
--   schedule-later     runs that are not due yet: `ripen` moves them to the engaged ones
--   schedule-ended     ended runs that the history keeps
local overlap = {}
whenUsed(overlap, function()
  -- The planner needs at most this many engaged runs, and at most this many of the newest waiting ones.
  local MOST_PLANNED = 1000
  local freed, isFreed = {}, {}

  function overlap.ripen(schedule)
    for _, number in ipairs(redis.call('ZRANGEBYSCORE', key('schedule-later', schedule), '-inf', now, 'LIMIT', 0, 1000)) do
      redis.call('ZREM', key('schedule-later', schedule), number)
      redis.call('ZADD', key('schedule-engaged', schedule), number, number)
    end
  end

  function overlap.engage(run, isNew)
    if not isNew then redis.call('ZREM', key('schedule-later', run.schedule), run.number) end
    redis.call('ZADD', key('schedule-engaged', run.schedule), run.number, run.number)
  end

  function overlap.wait(run)
    redis.call('ZREM', key('schedule-later', run.schedule), run.number)
    redis.call('ZREM', key('schedule-engaged', run.schedule), run.number)
    redis.call('ZADD', key('schedule-waiting', run.schedule), run.number, run.number)
  end

  function overlap.stopWaiting(run) redis.call('ZREM', key('schedule-waiting', run.schedule), run.number) end

  function overlap.delay(run) redis.call('ZADD', key('schedule-later', run.schedule), run.readyAt, run.number) end

  -- For a run that has ended or was taken back.
  function overlap.leave(run)
    redis.call('ZREM', key('schedule-engaged', run.schedule), run.number)
    redis.call('ZREM', key('schedule-later', run.schedule), run.number)
    overlap.mayBeFree(run.schedule)
  end

  -- Notes that the next waiting run of a schedule may start. pass-on.lua checks that before the script ends.
  function overlap.mayBeFree(schedule)
    if isFreed[schedule] then return end
    isFreed[schedule] = true
    freed[#freed + 1] = schedule
  end

  function overlap.takeFreed()
    local list = freed
    freed, isFreed = {}, {}
    return list
  end

  function overlap.firstWaiting(schedule) return redis.call('ZRANGE', key('schedule-waiting', schedule), 0, 0)[1] end

  function overlap.firstEngaged(schedule)
    overlap.ripen(schedule)
    return redis.call('ZRANGE', key('schedule-engaged', schedule), 0, 0)[1]
  end

  -- The unfinished runs of a schedule, without those that are not due yet. With `most`: at most that many engaged runs,
  -- the oldest, and at most that many waiting ones, the newest.
  function overlap.unfinished(schedule, most)
    overlap.ripen(schedule)
    local them = redis.call('ZRANGE', key('schedule-engaged', schedule), 0, most and most - 1 or -1)
    for _, number in ipairs(redis.call('ZRANGE', key('schedule-waiting', schedule), most and -most or 0, -1)) do
      them[#them + 1] = number
    end
    return runs.loadMany(them)
  end

  -- The unfinished runs of a schedule as one text for the planner: of each run its state, whether it has begun, and its
  -- tick, such as `running:begun:1700000000000 waiting:new:-`. A plan is based on this text, and is dropped if the text
  -- has changed before the plan is written.
  function overlap.unfinishedText(schedule)
    local words = {}
    for at, run in ipairs(overlap.unfinished(schedule, MOST_PLANNED)) do
      words[at] = run.state .. ':' .. (run.attempt == 0 and 'new' or 'begun') .. ':' .. (run.origin == 'tick' and int(run.tick) or '-')
    end
    return table.concat(words, ' ')
  end

  -- Whether ticks may overlap. A schedule's text begins with its overlap policy.
  function overlap.isAllowed(text) return string.sub(text, 1, 6) == 'allow ' end
end)
