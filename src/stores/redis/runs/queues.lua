-- Ready runs, where claims look for them: a queue for each target and priority, sorted by when its runs may start. What
-- is not due yet stands there, too. What a script adds and removes is written when it ends, or before the queues are read.
local queues = {}
define(queues, function()
  local pending, known = {}, {}

  -- How often a run was added: a claim that sees it grow has to look at its queues again.
  queues.additions = 0

  local function nameOf(run) return run.priority .. ':' .. run.target end

  local function change(name, run, readyAt)
    pending[name] = pending[name] or {}
    pending[name][run.number] = readyAt
  end

  local function know(name, run)
    if known[name] then return end
    known[name] = true
    local isNew = redis.call('ZADD', key('queue-priorities', run.target), -run.priority, run.priority) == 1
    if isNew then redis.call('ZADD', key('queue-targets'), 0, run.target) end
  end

  function queues.add(run)
    local name = nameOf(run)
    know(name, run)
    change(name, run, int(run.readyAt))
    queues.additions = queues.additions + 1
  end

  function queues.remove(run) change(nameOf(run), run, false) end

  function queues.save()
    for name, changes in pairs(pending) do
      local added, removed = {}, {}
      for number, readyAt in pairs(changes) do
        if readyAt then
          added[#added + 1] = readyAt
          added[#added + 1] = number
        else removed[#removed + 1] = number end
      end
      batch('ZREM', key('queue', name), removed)
      batch('ZADD', key('queue', name), added)
    end
    pending = {}
  end
end)
