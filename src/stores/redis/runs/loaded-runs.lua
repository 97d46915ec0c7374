-- include: schema/numbers
-- include: schema/sets
-- The runs that a script has read or made. `save` writes their changes when the script ends.
--
-- The layout of a run's text is in runs/run-codec.ts. Scripts use its first line as a table. The other four lines are
-- the user's JSON, which scripts keep as unparsed text (`rest`).
local runs = {}
whenUsed(runs, function()
  -- cjson writes only 14 digits of a number, so instants after the year 5138 are stored as texts.
  local WRITABLE = 1e14

  local function parse(number, text)
    local lineEnd = string.find(text, '\n', 1, true)
    local run = cjson.decode(string.sub(text, 1, lineEnd - 1))
    run.readyAt, run.startBy, run.tick = tonumber(run.readyAt), tonumber(run.startBy), tonumber(run.tick)
    run.number, run.rest = number, string.sub(text, lineEnd)
    return run
  end

  local function writable(instant) return instant and instant >= WRITABLE and int(instant) or instant end

  local function write(run)
    local number, rest, readyAt, startBy, tick = run.number, run.rest, run.readyAt, run.startBy, run.tick
    run.number, run.rest, run.readyAt, run.startBy, run.tick = nil, nil, writable(readyAt), writable(startBy), writable(tick)
    local text = cjson.encode(run) .. rest
    run.number, run.rest, run.readyAt, run.startBy, run.tick = number, rest, readyAt, startBy, tick
    return text
  end

  function runs.setEnding(run, result, err)
    local resultEnd = string.find(run.rest, '\n', 2, true)
    local errorEnd = string.find(run.rest, '\n', resultEnd + 1, true)
    run.rest = '\n' .. (result or '') .. '\n' .. (err or '') .. string.sub(run.rest, errorEnd)
  end

  local loaded, changed, isChanged, texts = {}, {}, {}, {}

  -- The member of runs-open for a run: the name of its owner (its schedule, or else its job or sink), and its number.
  local function openMember(run)
    return (run.schedule or string.match(run.target, '^%a+:(.*)$')) .. '\n' .. run.number
  end

  function runs.load(number)
    local run = loaded[number]
    if run == nil then
      local text = redis.call('HGET', key('runs'), number)
      run = text and parse(number, text)
      loaded[number] = run
    end
    return run or nil
  end

  -- Returns the runs with these numbers that exist, in the same order.
  function runs.loadMany(them)
    local unknown, found = {}, {}
    for _, number in ipairs(them) do
      if loaded[number] == nil then unknown[#unknown + 1] = number end
    end
    for at, text in ipairs(readMany('HMGET', key('runs'), unknown)) do
      loaded[unknown[at]] = text and parse(unknown[at], text)
    end
    for _, number in ipairs(them) do found[#found + 1] = loaded[number] or nil end
    return found
  end

  -- The older of two run numbers. Either may be nil.
  function runs.older(one, other)
    if one and other then return one < other and one or other end
    return one or other
  end

  function runs.change(run)
    if isChanged[run] ~= nil then return end
    isChanged[run] = true
    changed[#changed + 1] = run
  end

  -- Adds a new run. `body` is its options and payload, a line each. The run has no state until transitions.makeReady or
  -- makeWait gives it one.
  function runs.add(run, body, number)
    run.number, run.rest = number or numbers.nextText(), '\n\n\n' .. body
    run.createdAt, run.attempt, run.failures, run.takeovers = now, run.attempt or 0, 0, 0
    loaded[run.number] = run
    if not number then
      sets.put(key('runs-all'), run.number, run.number)
      sets.put(key('runs-open'), openMember(run), 0)
    end
    runs.change(run)
    return run
  end

  function runs.forget(run)
    isChanged[run], loaded[run.number] = false, false
    redis.call('HDEL', key('runs'), run.number)
    sets.remove(key('runs-all'), run.number)
    sets.remove(key('runs-open'), openMember(run))
    sets.remove(key('runs-ended'), run.number)
    if run.schedule then redis.call('ZREM', key('schedule-ended', run.schedule), run.number) end
    if run.backfill then redis.call('HDEL', key('schedule-backfills', run.schedule), int(run.tick) .. '/' .. run.backfill) end
  end

  function runs.keepEnded(run)
    sets.remove(key('runs-open'), openMember(run))
    sets.put(key('runs-ended'), run.number, int(numbers.next()))
    if run.schedule then redis.call('ZADD', key('schedule-ended', run.schedule), run.number, run.number) end
  end

  function runs.reopen(run)
    sets.remove(key('runs-ended'), run.number)
    sets.put(key('runs-open'), openMember(run), 0)
    if run.schedule then redis.call('ZREM', key('schedule-ended', run.schedule), run.number) end
  end

  function runs.save()
    local written = {}
    for _, run in ipairs(changed) do
      if isChanged[run] then
        texts[run] = write(run)
        written[#written + 1] = run.number
        written[#written + 1] = texts[run]
      end
    end
    batch('HSET', key('runs'), written)
  end

  -- Returns a run as run-codec.ts reads it, with its number in front. To be called after `save`.
  function runs.tell(run) return run.number .. '\n' .. (texts[run] or write(run)) end
end)
