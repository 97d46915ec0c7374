-- Numbers that only grow: of runs, versions, skips and endings. They follow the clock, so that shards agree on the age of runs.
local numbers = {}
whenUsed(numbers, function()
  local last, place

  -- A failover may have lost the last numbers: what this client has seen of the clock is the least that new ones may be.
  function numbers.startFrom(least) clock.countFrom = math.max(clock.countFrom, least) end

  function numbers.next()
    last = last or tonumber(redis.call('HGET', key('meta'), 'count') or '0')
    last = math.max(last + 1, clock.countFrom)
    return last
  end

  -- Numbers up to this one were given out, too.
  function numbers.skipTo(number) last = math.max(last, number) end

  -- As the name of a run, or of a member that is sorted by text.
  function numbers.nextText() return string.format('%016.0f', numbers.next()) end

  -- A score by which schedules that are due at one instant come in the order in which they were written. The fraction is
  -- the place in line, as a multiple of 1/4096: a score can be no finer.
  function numbers.inLine(instant)
    place = ((place or tonumber(redis.call('HGET', key('meta'), 'line') or '0')) + 1) % 4096
    return string.format('%.0f.%04d', instant, place * 10000 / 4096 + 0.5)
  end

  function numbers.save()
    if last then
      redis.call('HSET', key('meta'), 'count', int(last))
      clock.countedTo(last)
    end
    if place then redis.call('HSET', key('meta'), 'line', place) end
  end
end)
