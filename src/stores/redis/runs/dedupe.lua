-- Dedupe keys. While a run with a dedupe key is unfinished, and for `dedupeForMs` after its end, no other run of its
-- target can be enqueued with the same key. The stored text is `<run> <until>`; until is 0 while the run is unfinished.
local dedupe = {}
whenUsed(dedupe, function()
  local function fieldOf(target, name) return cjson.encode({ target, name }) end

  -- Returns the run that has the dedupe key now, or nil.
  function dedupe.holder(target, name)
    local number, untilAt =
      string.match(redis.call('HGET', key('dedupe'), fieldOf(target, name)) or '', '^([^ ]+) ([^ ]+)')
    if number and (untilAt == '0' or tonumber(untilAt) > now) then return number end
  end

  local function isHeldBy(field, run)
    return string.match(redis.call('HGET', key('dedupe'), field) or '', '^[^ ]+') == run.number
  end

  function dedupe.open(run)
    if not run.dedupe then return end
    local field = fieldOf(run.target, run.dedupe)
    redis.call('ZREM', key('dedupe-expiry'), field)
    redis.call('HSET', key('dedupe'), field, run.number .. ' 0')
  end

  function dedupe.close(run)
    if not run.dedupe then return end
    local field = fieldOf(run.target, run.dedupe)
    if not isHeldBy(field, run) then return end
    local untilAt = now + (run.dedupeForMs or 0)
    if untilAt <= now then
      redis.call('ZREM', key('dedupe-expiry'), field)
      redis.call('HDEL', key('dedupe'), field)
    else
      redis.call('HSET', key('dedupe'), field, run.number .. ' ' .. int(untilAt))
      redis.call('ZADD', key('dedupe-expiry'), untilAt, field)
    end
  end

  -- Removes the dedupe key of a run that is removed as if it had never existed.
  function dedupe.forget(run)
    if not run.dedupe then return end
    local field = fieldOf(run.target, run.dedupe)
    if isHeldBy(field, run) then redis.call('HDEL', key('dedupe'), field) end
  end
end)
