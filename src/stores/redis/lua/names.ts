/**
 * Lease names: how many hold one, for how long, and what a new holder is given.
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
end`
