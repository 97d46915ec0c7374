-- Numbers that only increase, for runs, versions, skips and endings. They follow the clock, so that runs of different
-- shards can be compared by age.
local numbers = {}
whenUsed(numbers, function()
  local last, place

  -- A failover may have lost the newest numbers. `least` is the time that this client knows of: no lower number is
  -- issued.
  function numbers.startFrom(least) clock.countFrom = math.max(clock.countFrom, least) end

  function numbers.next()
    last = last or tonumber(redis.call('HGET', key('meta'), 'count') or '0')
    last = math.max(last + 1, clock.countFrom)
    return last
  end

  -- Marks all numbers up to this one as issued.
  function numbers.skipTo(number) last = math.max(last, number) end

  -- The next number as text, with zeros in front: the name of a run, or a member that is sorted by text.
  function numbers.nextText() return string.format('%016.0f', numbers.next()) end

  -- A score that sorts schedules that are due at the same instant in the order in which they were written. The fraction
  -- counts up by 1/4096, the smallest step that a score of this size can have.
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
