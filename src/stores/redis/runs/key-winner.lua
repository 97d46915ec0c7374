-- include: cluster/tickets/requests
-- include: runs/key-line
-- The run that stands in the way of another one, which is enqueued on condition that its key is free: when as many as the
-- key has permits are due or executing, or one is ready at the same instant.
local function keyWinner(name, limit, readyAt)
  keyLine.ripen(name)
  if readyAt > now then
    return redis.call('ZRANGEBYSCORE', key('key-later', name), int(readyAt), int(readyAt), 'LIMIT', 0, 1)[1]
  end
  local due, holder = redis.call('ZCARD', key('key-due', name)), nil
  if due < limit then return nil end
  for _, lease in ipairs(permits.of(name).holders) do
    -- Its claim decides, when the run of that ticket has started or is known to be gone.
    if tickets.isUnsure(lease) then due = due - 1 else holder = holder or lease.run end
  end
  if due < limit then return nil end
  if holder then return holder end
  local ready, waiting = keyLine.firstReady(name), keyLine.firstWaiting(name)
  if ready and waiting then return ready < waiting and ready or waiting end
  if ready or waiting then return ready or waiting end
  -- No run of the key is ready or waits for it: the oldest that waits for its retry, else the oldest that waits for other
  -- runs of its schedule.
  local rest = redis.call('ZRANGE', key('key-due', name), 0, 99)
  for _, run in ipairs(runs.loadMany(rest)) do
    if run.attempt > 0 then return run.number end
  end
  return rest[1]
end
