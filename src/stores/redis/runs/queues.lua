-- Ready runs, where claims look for them: a queue for each target and priority, sorted by when its runs may start. What
-- is not due yet stands there, too.
local queues = {}
define(queues, function()
  local known = {}

  -- How often a run was added: a claim that sees it grow has to look at its queues again.
  queues.additions = 0

  function queues.add(run)
    local name = key('queue', run.priority, run.target)
    redis.call('ZADD', name, int(run.readyAt), run.number)
    queues.additions = queues.additions + 1
    if known[name] then return end
    known[name] = true
    redis.call('ZADD', key('queue-priorities', run.target), -run.priority, run.priority)
    redis.call('ZADD', key('queue-targets'), 0, run.target)
  end

  function queues.remove(run) redis.call('ZREM', key('queue', run.priority, run.target), run.number) end
end)
