/**
 * Who is next: for a name, among the locks and then the runs that wait for it; for a schedule, among its runs that wait for
 * each other. Every operation ends with handing on what it freed.
 */
export const HAND_ON = `
local function dropWaiter(m, holder)
  redis.call('HDEL', KEYS[1] .. 'wd:' .. m.K, holder)
  return redis.call('ZREM', KEYS[1] .. 'ww:' .. m.K, holder)
end

-- Gives free permits to the locks that wait, oldest first, and tells each of them. A lease lasts until the waiter's place
-- would have expired: only asking again proves that the waiter still lives. Places that have expired are gone.
local function serveWaiters(m)
  while m.waits do
    local holder = redis.call('ZRANGE', KEYS[1] .. 'ww:' .. m.K, 0, 0)[1]
    if not holder then
      m.waits = false
      changeName(m)
      return
    end
    local ttl, permits, inst, floor, untilAt =
      string.match(redis.call('HGET', KEYS[1] .. 'wd:' .. m.K, holder) or '', '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)')
    if untilAt and tonumber(untilAt) > now then
      if isBusy(m, tonumber(permits)) then return end
      grantLock(m, holder, math.min(tonumber(ttl), tonumber(untilAt) - now), tonumber(permits), inst, tonumber(floor))
      redis.call('PUBLISH', string.match(KEYS[1], '^(.*){') .. 'wakes', '- ' .. LEASES .. ' ' .. holder)
    end
    dropWaiter(m, holder)
  end
end

-- Runs whose time has come count from then on, and stand in line if they wait for nothing else.
local function ripenKey(K)
  for _, set in ipairs({ 'kd:', 'kv:' }) do
    for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. set .. K, '-inf', now, 'LIMIT', 0, 1000)) do
      redis.call('ZREM', KEYS[1] .. set .. K, n)
      redis.call('ZADD', KEYS[1] .. 'k:' .. K, order(n), n)
      if set == 'kd:' then redis.call('ZADD', KEYS[1] .. 'ks:' .. K, order(n), n) end
    end
  end
end

-- Makes as many waiting runs ready as there are free permits, oldest first. One that waits behind an older run which
-- nobody has claimed yet stays where it is: it could not start.
local function wakeRuns(m)
  if not m.runs then return end
  ripenKey(m.K)
  local before = redis.call('ZRANGE', KEYS[1] .. 'ks:' .. m.K, 0, 0)[1]
  local taken = countLive(m)
  while true do
    local n = redis.call('ZRANGE', KEYS[1] .. 'kw:' .. m.K, 0, 0)[1]
    if not n then
      m.runs = false
      changeName(m)
      return
    end
    if before and n > before then return end
    local r = load(n)
    if not r then redis.call('ZREM', KEYS[1] .. 'kw:' .. m.K, n)
    else
      if taken >= tonumber(fixed(r).limit) then return end
      taken = taken + 1
      makeReady(r)
    end
  end
end

-- Locks come before runs: somebody sits and waits for them.
local function serveName(m)
  local waited = m.waits or m.runs
  serveWaiters(m)
  wakeRuns(m)
  if waited and not m.waits and not m.runs then redis.call('SREM', KEYS[1] .. 'blocked', m.K) end
end

local function ripenLane(sched)
  for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'd:' .. sched, '-inf', now, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', KEYS[1] .. 'd:' .. sched, n)
    redis.call('ZADD', KEYS[1] .. 'e:' .. sched, n, n)
  end
end

-- When all that is left of a schedule's runs waits for the others, the oldest goes on.
local function serveLane(sched)
  local n = redis.call('ZRANGE', KEYS[1] .. 'w:' .. sched, 0, 0)[1]
  if not n then return end
  ripenLane(sched)
  if redis.call('ZCARD', KEYS[1] .. 'e:' .. sched) > 0 then return end
  local r = load(n)
  if r then makeReady(r) else redis.call('ZREM', KEYS[1] .. 'w:' .. sched, n) end
end

-- Most schedules have nothing that waits. Whether any of them has is asked for many at once.
local function serveLanes(lanes)
  for first = 1, #lanes, 1000 do
    local keys, last = {}, math.min(first + 999, #lanes)
    for at = first, last do keys[#keys + 1] = KEYS[1] .. 'w:' .. lanes[at] end
    if redis.call('EXISTS', unpack(keys)) > 0 then
      for at = first, last do serveLane(lanes[at]) end
    end
  end
end

-- Ends every operation: what it freed goes to the oldest that waits for it.
local function handOn()
  while #touchedNames > 0 or #touchedLanes > 0 do
    local freed, lanes = touchedNames, touchedLanes
    touchedNames, touchedLanes = {}, {}
    for _, K in ipairs(freed) do serveName(name(K)) end
    serveLanes(lanes)
  end
end`
