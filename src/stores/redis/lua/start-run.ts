/**
 * Starting one run: a claim's instance, number, floor and first token are at hand, and the list of what it took from each
 * queue.
 */
export const START_RUN = `
-- A key is free for a run when a permit is, and no older run that is due stands before it.
local function mayTakeKey(r, m)
  local permits = tonumber(r.limit)
  serveWaiters(m)
  if isBusy(m, permits) then
    if r.attempt ~= '0' or r.busy ~= 's' then makeWait(r, 'k')
    elseif mayBeFree(m) then makeWait(r, 'b')
    else endRun(r, 'K', 'busy') end
    return false
  end
  makeRoom(m, permits)
  ripenKey(r.key)
  local standing, waiting = redis.call('ZRANGE', KEYS[1] .. 'ks:' .. r.key, 0, 0)[1], redis.call('ZRANGE', KEYS[1] .. 'kw:' .. r.key, 0, 0)[1]
  if (standing and standing < r.n) or (waiting and waiting < r.n) then
    makeWait(r, 'k')
    return false
  end
  return true
end

-- Most runs have no key, and were never started before: they are started without being taken apart. What is not so
-- answers nothing, and goes the long way.
local FRESH = '^R %- 0 0 0 %- 0 0 0 ([^ ]+ ([^ ]+) [^ ]+) %- %- %- ([^ ]+) %- %- (([pl])[^\\n]+)()'
local startedBegin = 'X - 1 0 0 ' .. firstText .. ' ' .. claim .. ' 0 0 '
local startedMiddle = ' ' .. nowText .. ' - - '
local runningText = claim .. ' ' .. firstText .. ' 0'
local running = collect(runningAdded, inst)
local function startFresh(n, text, queue)
  local times, startBy, tick, kind, _, at = string.match(text, FRESH)
  if not times or (startBy ~= '-' and now > tonumber(startBy)) then return nil end
  local list, place = collect(taken, queue), #running
  list[#list + 1] = n
  running[place + 1], running[place + 2] = n, runningText
  return changeText(n, startedBegin .. times .. startedMiddle .. tick .. ' - ' .. inst .. ' ' .. kind .. string.sub(text, at))
end

-- Starts a run, or takes it out of the queue because it may not start now.
local function start(r, queue)
  if r.attempt == '0' and r.startBy ~= '-' and now > tonumber(r.startBy) then
    endRun(r, 'K', 'deadline')
    return false
  end
  local last, m = tonumber(r.token) or 0, nil
  if string.byte(r.kind) == 120 and fixed(r).key ~= '-' then
    m = name(r.key)
    if not mayTakeKey(r, m) then return false end
    last = math.max(last, m.last)
    withdraw(r)
    if isTicket(r.n) then r.wait = 'u' end
  else
    local list = collect(taken, queue)
    list[#list + 1] = r.n
  end
  local token = nextToken(last, floor)
  r.st, r.token, r.startedAt, r.inst, r.claim = 'X', token == first and firstText or int(token), nowText, inst, claim
  r.attempt = r.attempt == '0' and '1' or int(r.attempt + 1)
  if r.rescued == '1' then
    r.takeovers, r.rescued = int(r.takeovers + 1), '0'
  end
  change(r)
  running[#running + 1] = r.n
  running[#running + 1] = claim .. ' ' .. r.token .. ' ' .. r.cancel
  if m then
    addHolder(m, { holder = 'run:' .. r.n .. ':' .. r.token, token = token, acquired = now, expires = now, released = '0',
      inst = inst, run = r.n })
    redis.call('ZADD', KEYS[1] .. 'k:' .. r.key, order(r.n), r.n)
    -- With permits left, whoever waited only because this run stood before it is next.
    if tonumber(r.limit) > 1 then wakeRuns(m) end
  end
  return true
end`
