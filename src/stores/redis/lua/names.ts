/**
 * Lease names: how many hold one, who is next, and the handing on that every operation ends with.
 *
 * A name is one text: its last token, whether locks (w) or runs (r) wait for it, and a line for each holder. A holder
 * whose time is over is not counted, but it is only removed by somebody who takes its place. Until then it may renew. If
 * it was a run's attempt, the run is fenced in that same step.
 *
 * Lock time is compared with the clock; that the text itself expires, long after, only keeps the store tidy.
 */
export const NAMES = `
local DAY = 86400000
local names, changedNames, touchedNames, touchedLanes = {}, {}, {}, {}
local instanceEnds = {}
local takeOver, makeReady

local function touch(list, name)
  if not list[name] then
    list[name] = true
    list[#list + 1] = name
  end
end

local function name(K)
  local m = names[K]
  if m then return m end
  m = { K = K, last = 0, waits = false, runs = false, holders = {} }
  names[K] = m
  local text = redis.call('GET', KEYS[1] .. 'n:' .. K)
  if not text then return m end
  m.known = true
  local last, flags, at = string.match(text, '^(%d+) ([^ \\n]+)()')
  m.last = tonumber(last)
  m.waits = string.find(flags, 'w', 1, true) ~= nil
  m.runs = string.find(flags, 'r', 1, true) ~= nil
  for holder, token, acquired, expires, released, inst, run in
    string.gmatch(string.sub(text, at), '\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) ([^ \\n]+)') do
    m.holders[#m.holders + 1] = { holder = holder, token = tonumber(token), acquired = tonumber(acquired),
      expires = tonumber(expires), released = released, inst = inst, run = run }
  end
  return m
end

local function changeName(m)
  if not m.changed then
    m.changed = true
    changedNames[#changedNames + 1] = m
  end
end

local function saveName(m)
  local lines = { int(m.last) .. ' ' .. ((m.waits and 'w' or '') .. (m.runs and 'r' or '') .. '-') }
  local longest, stays = 0, m.waits or m.runs
  for _, h in ipairs(m.holders) do
    lines[#lines + 1] = h.holder .. ' ' .. int(h.token) .. ' ' .. int(h.acquired) .. ' ' .. int(h.expires) .. ' ' ..
      h.released .. ' ' .. h.inst .. ' ' .. h.run
    if h.run ~= '-' then stays = true else longest = math.max(longest, h.expires) end
  end
  if not m.known then redis.call('ZADD', KEYS[1] .. 'names', 0, unescape(m.K)) end
  local text = table.concat(lines, '\\n')
  if stays then redis.call('SET', KEYS[1] .. 'n:' .. m.K, text)
  elseif #m.holders == 0 then redis.call('SET', KEYS[1] .. 'n:' .. m.K, text, 'PX', DAY)
  else redis.call('SET', KEYS[1] .. 'n:' .. m.K, text, 'PX', int(housekeeping(longest - now))) end
end

local function saveNames()
  for _, m in ipairs(changedNames) do saveName(m) end
end

-- Runs are numbered, and tickets have the number of their run and its shard.
local function order(n) return string.sub(n, 1, 16) end
local function isTicket(n) return #n > 16 end

-- When an instance's lease runs out, and how much longer its tickets hold their keys: a key outlives the lease of a run
-- in another shard, whose beat may have come a moment later.
local instanceGraces = {}
local function instanceEnd(inst)
  local ends = instanceEnds[inst]
  if not ends then
    local text = redis.call('GET', KEYS[1] .. 'i:' .. inst) or '0 1 0 0 0'
    local expires, beat = string.match(text, '^(%d+) %d [^ ]+ %d+ (%d+)')
    ends = tonumber(expires)
    instanceEnds[inst], instanceGraces[inst] = ends, (ends - tonumber(beat)) / 10
  end
  return ends
end
local function ticketEnd(inst)
  local ends = instanceEnd(inst)
  return ends + (instanceGraces[inst] or 0)
end

local function endOf(h)
  if h.run == '-' then return h.expires end
  if isTicket(h.run) then return ticketEnd(h.inst) end
  return instanceEnd(h.inst)
end

local function countLive(m)
  local live = 0
  for _, h in ipairs(m.holders) do if endOf(h) > now then live = live + 1 end end
  return live
end

local function isBusy(m, permits) return #m.holders >= permits and countLive(m) >= permits end

local function holderOf(m, holder)
  for _, h in ipairs(m.holders) do if h.holder == holder then return h end end
end

local function removeHolder(m, h)
  for at, other in ipairs(m.holders) do
    if other == h then
      table.remove(m.holders, at)
      break
    end
  end
  changeName(m)
  touch(touchedNames, m.K)
end

-- Removes holders whose time is over, the longest first, until there is room for one more.
local function makeRoom(m, permits)
  while #m.holders >= permits do
    local longest = m.holders[1]
    for _, h in ipairs(m.holders) do if endOf(h) < endOf(longest) then longest = h end end
    if endOf(longest) > now then return end
    local r = longest.run ~= '-' and load(longest.run)
    if r then takeOver(r, true) else removeHolder(m, longest) end
  end
end

local function addHolder(m, h)
  m.last = h.token
  m.holders[#m.holders + 1] = h
  changeName(m)
  return h
end

local function nextToken(last, floor) return math.max(last + 1, nowUs, floor) end

local function grantLock(m, holder, ttl, permits, inst, floor)
  makeRoom(m, permits)
  return addHolder(m, { holder = holder, token = nextToken(m.last, floor), acquired = now, expires = now + ttl,
    released = '0', inst = inst, run = '-' })
end

local function dropWaiter(m, holder)
  redis.call('HDEL', KEYS[1] .. 'wd:' .. m.K, holder)
  return redis.call('ZREM', KEYS[1] .. 'ww:' .. m.K, holder)
end

-- Gives free permits to the locks that wait, oldest first, and tells each of them. Places that were not asked for again
-- in time are gone.
local handedOn = false
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
      grantLock(m, holder, tonumber(ttl), tonumber(permits), inst, tonumber(floor))
      handedOn = true
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

-- Ends every operation: what it freed goes to the oldest that waits for it.
local function handOn()
  while #touchedNames > 0 or #touchedLanes > 0 do
    local freed, lanes = touchedNames, touchedLanes
    touchedNames, touchedLanes = {}, {}
    for _, K in ipairs(freed) do serveName(name(K)) end
    for _, sched in ipairs(lanes) do serveLane(sched) end
  end
end`
