-- include: runs/run-text
-- include: schema/numbers
-- The runs that a script has read, what it has changed of them, and writing that when it ends.
local runs = {}
define(runs, function()
  local loaded, changed, isChanged = {}, {}, {}
  local added, forgotten, ended, unended = {}, {}, {}, {}
  local started, stopped, texts = {}, {}, {}

  function runs.load(number)
    local run = loaded[number]
    if run == nil then
      local text = redis.call('HGET', key('runs'), number)
      run = text and runText.parse(number, text)
      loaded[number] = run
    end
    return run or nil
  end

  -- Those that are there, in order.
  function runs.loadMany(them)
    local unknown, found = {}, {}
    for _, number in ipairs(them) do
      if loaded[number] == nil then unknown[#unknown + 1] = number end
    end
    for at, text in ipairs(readMany('HMGET', key('runs'), unknown)) do
      loaded[unknown[at]] = text and runText.parse(unknown[at], text)
    end
    for _, number in ipairs(them) do found[#found + 1] = loaded[number] or nil end
    return found
  end

  function runs.change(run)
    if isChanged[run] then return end
    isChanged[run] = true
    changed[#changed + 1] = run
  end

  -- A run that was just made. It has no state yet: transitions.makeReady or makeWait gives it one.
  function runs.add(run, body, number)
    run.number, run.rest = number or numbers.nextText(), runText.linesFor(body)
    run.createdAt, run.attempt, run.failures, run.takeovers = now, run.attempt or 0, 0, 0
    loaded[run.number] = run
    if not number then
      added[#added + 1] = run.number
      added[#added + 1] = run.number
    end
    runs.change(run)
    return run
  end

  function runs.forget(run)
    runs.change(run)
    forgotten[run] = true
    loaded[run.number] = false
    if run.schedule then redis.call('ZREM', key('schedule-ended', run.schedule), run.number) end
    if run.backfill then redis.call('HDEL', key('schedule-backfills', run.schedule), int(run.tick) .. '/' .. run.backfill) end
  end

  function runs.keepEnded(run)
    ended[#ended + 1] = int(numbers.next())
    ended[#ended + 1] = run.number
    if run.schedule then redis.call('ZADD', key('schedule-ended', run.schedule), run.number, run.number) end
  end

  function runs.unend(number) unended[#unended + 1] = number end

  local function note(lists, run)
    local list = lists[run.instance] or {}
    lists[run.instance] = list
    list[#list + 1] = run.number
  end

  -- An instance's running runs. A run that is stopped and started by one script is stopped first.
  function runs.noteStarted(run) note(started, run) end
  function runs.noteStopped(run) note(stopped, run) end

  function runs.save()
    local written, gone = {}, {}
    for _, run in ipairs(changed) do
      if forgotten[run] then gone[#gone + 1] = run.number
      else
        texts[run] = runText.write(run)
        written[#written + 1] = run.number
        written[#written + 1] = texts[run]
      end
    end
    for instance, them in pairs(stopped) do batch('SREM', key('instance-running', instance), them) end
    for instance, them in pairs(started) do batch('SADD', key('instance-running', instance), them) end
    batch('HSET', key('runs'), written)
    batch('HDEL', key('runs'), gone)
    batch('ZADD', key('runs-all'), added)
    batch('ZREM', key('runs-all'), gone)
    batch('ZADD', key('runs-ended'), ended)
    batch('ZREM', key('runs-ended'), unended)
  end

  -- As run-codec.ts reads it, with the number in front. Asked for once all is saved.
  function runs.tell(run) return run.number .. '\n' .. (texts[run] or runText.write(run)) end
end)
