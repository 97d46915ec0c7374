-- Ready runs, where claims look for them: a queue for each target and priority, sorted by when its runs may start. What
-- is not due yet stands there, too. What a script adds and removes is written when it ends, or before the queues are read.
local queues = {}
define(queues, function()
  local pending, known = {}, {}

  -- How often a run was added: a claim that sees it grow has to look at its queues again.
  queues.additions = 0

  local function pendingOf(run)
    local name = key('queue', run.priority, run.target)
    pending[name] = pending[name] or {}
    return pending[name]
  end

  local function know(priority, target)
    local name = priority .. ':' .. target
    if known[name] then return end
    known[name] = true
    local isNew = redis.call('ZADD', key('queue-priorities', target), -priority, priority) == 1
    if isNew then redis.call('ZADD', key('queue-targets'), 0, target) end
  end

  function queues.add(run)
    know(run.priority, run.target)
    pendingOf(run)[run.number] = int(run.readyAt)
    queues.additions = queues.additions + 1
  end

  function queues.remove(run) pendingOf(run)[run.number] = false end

  function queues.save()
    for name, changes in pairs(pending) do
      local added, removed = {}, {}
      for number, readyAt in pairs(changes) do
        if readyAt then
          added[#added + 1] = readyAt
          added[#added + 1] = number
        else removed[#removed + 1] = number end
      end
      batch('ZREM', name, removed)
      batch('ZADD', name, added)
    end
    pending = {}
  end
end)
