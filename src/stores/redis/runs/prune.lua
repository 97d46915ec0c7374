-- include: locks/pass-on
-- include: schedules/take-back
-- runs/prune.lua: deletes old history, and the oldest ended runs beyond `maxRuns` (contract: runs.prune). Every kind of entry is sorted by
-- age, so the cost depends only on how much is deleted. Texts of locks expire by themselves; `pruneNames` then removes
-- their names from the index.
-- Keys: runs, runs-ended, skips, schedule-skips, schedules-finished, lock-names, lock, dedupe, dedupe-expiry, meta.
-- Crash or lost reply: the next prune deletes the rest.

-- How many names of locks `pruneNames` reads at a time.
local NAMES = 200

local forgotten = 0
local function left() return given.limit - forgotten end

-- A server that has reached maxmemory checks only the first write of a script: it refuses that write if it may need
-- memory, and accepts all later ones. So the first write is one that needs none.
redis.call('HDEL', key('meta'), '-')

local function pruneRuns()
  local kept = redis.call('ZCARD', key('runs-ended'))
  local function mayStay(run) return run and run.finishedAt > now - given.maxAgeMs and kept <= given.maxRuns end
  if left() <= 0 or kept == 0 then return end
  -- Usually there is nothing to delete. The oldest run is enough to tell.
  if mayStay(runs.load(redis.call('ZRANGE', key('runs-ended'), 0, 0)[1])) then return end
  local oldest = redis.call('ZRANGE', key('runs-ended'), 0, left() - 1)
  runs.loadMany(oldest)
  for _, number in ipairs(oldest) do
    local run = runs.load(number)
    if mayStay(run) then return end
    if run then runs.forget(run) else sets.remove(key('runs-ended'), number) end
    kept, forgotten = kept - 1, forgotten + 1
  end
end

local function pruneSkips()
  if left() <= 0 then return end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key('skips'), '-inf', now - given.maxAgeMs, 'LIMIT', 0, left())) do
    local schedule, range = unpack(cjson.decode(member))
    redis.call('ZREM', key('schedule-skips', schedule), range)
    redis.call('ZREM', key('skips'), member)
    forgotten = forgotten + 1
  end
end

-- Removes a finished schedule together with its history, if it has no unfinished run.
local function pruneSchedules()
  local finished = redis.call('ZRANGEBYSCORE', key('schedules-finished'), '-inf', now - given.maxAgeMs, 'LIMIT', 0, 1000)
  for _, id in ipairs(finished) do
    if left() <= 0 then return end
    if not overlap.firstEngaged(id) and not overlap.firstWaiting(id) then
      takeBack.forgetSchedule(id)
      forgotten = forgotten + 1
    end
  end
end

-- Deletes abandoned leases of a name. Returns true if the text of the lock had expired, and only the index still had
-- its name.
local function pruneName(name)
  local lock = permits.of(name)
  for at = #lock.holders, 1, -1 do
    local lease = lock.holders[at]
    -- The holder ended without releasing the lease.
    if not lease.run and lease.expiresAt <= now - given.leaseAgeMs then
      permits.remove(lock, lease)
      forgotten = forgotten + 1
    end
  end
  if lock.isStored then return false end
  redis.call('ZREM', key('lock-names'), name)
  forgotten = forgotten + 1
  return true
end

-- Continues after the name that the last prune reached, and goes on while at least a quarter of the names have expired.
local function pruneNames()
  local from = redis.call('HGET', key('meta'), 'swept')
  local found, gone
  repeat
    found = redis.call('ZRANGEBYLEX', key('lock-names'), from and '(' .. from or '-', '+', 'LIMIT', 0, NAMES)
    gone = 0
    for _, name in ipairs(found) do
      if left() <= 0 then break end
      if pruneName(name) then gone = gone + 1 end
      from = name
    end
  until left() <= 0 or #found < NAMES or gone < NAMES / 4
  if from and #found == NAMES then redis.call('HSET', key('meta'), 'swept', from)
  else redis.call('HDEL', key('meta'), 'swept') end
end

local function pruneDedupes()
  if left() <= 0 then return end
  for _, field in ipairs(redis.call('ZRANGEBYSCORE', key('dedupe-expiry'), '-inf', now, 'LIMIT', 0, left())) do
    redis.call('ZREM', key('dedupe-expiry'), field)
    redis.call('HDEL', key('dedupe'), field)
    forgotten = forgotten + 1
  end
end

pruneRuns()
pruneSkips()
pruneSchedules()
pruneNames()
pruneDedupes()
commit()
return reply({ forgotten = forgotten })
