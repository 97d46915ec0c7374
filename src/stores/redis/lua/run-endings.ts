import { LOST_MESSAGE } from '../../../core/lost.js'
import { MAX_TAKEOVERS } from '../../../core/run.js'

/** How runs end, are taken over or make way, and what is forgotten with them. */
export const RUN_ENDINGS = `
local MAX_TAKEOVERS = ${MAX_TAKEOVERS}

local function forget(r)
  r.gone = true
  change(r)
  runs[r.n] = false
  if plain(r) then return end
  fixed(r)
  if r.sched ~= '-' then redis.call('ZREM', KEYS[1] .. 'l:' .. r.sched, r.n) end
  if r.origin == 'b' then redis.call('HDEL', KEYS[1] .. 'b:' .. r.sched, r.tick .. '/' .. r.backfill) end
end

-- A dedupe key refuses while its run is unfinished, and after its end for as long as was asked for.
local function openDedupe(r)
  if r.dedupe == '-' then return end
  local field = r.target .. ' ' .. r.dedupe
  redis.call('ZREM', KEYS[1] .. 'dt', field)
  redis.call('HSET', KEYS[1] .. 'dd', field, r.n .. ' 0')
end

local function dedupeOf(target, dedupe)
  local n, untilAt = string.match(redis.call('HGET', KEYS[1] .. 'dd', target .. ' ' .. dedupe) or '', '^([^ ]+) ([^ ]+)')
  if n and (untilAt == '0' or tonumber(untilAt) > now) then return n end
end

local function closeDedupe(r)
  if r.dedupe == '-' then return end
  local field = r.target .. ' ' .. r.dedupe
  if string.match(redis.call('HGET', KEYS[1] .. 'dd', field) or '', '^([^ ]+)') ~= r.n then return end
  local untilAt = now + tonumber(r.dedupeMs)
  if untilAt <= now then
    redis.call('ZREM', KEYS[1] .. 'dt', field)
    redis.call('HDEL', KEYS[1] .. 'dd', field)
  else
    redis.call('HSET', KEYS[1] .. 'dd', field, r.n .. ' ' .. int(untilAt))
    redis.call('ZADD', KEYS[1] .. 'dt', untilAt, field)
  end
end

-- As if there had never been such a run.
local function forgetDedupe(r)
  if fixed(r).dedupe == '-' then return end
  local field = r.target .. ' ' .. r.dedupe
  if string.match(redis.call('HGET', KEYS[1] .. 'dd', field) or '', '^([^ ]+)') == r.n then redis.call('HDEL', KEYS[1] .. 'dd', field) end
end

-- Ends a run: its key is freed, what waited for it is noted, and it stays in the history or not.
local function endRun(r, to, reason, err, result)
  local ran = r.st == 'X'
  dropTicket(r)
  withdraw(r)
  r.st = to
  change(r)
  local simple = plain(r)
  if not simple then
    fixed(r)
    if ran and r.key ~= '-' then freeKey(r) end
    disengage(r)
    closeDedupe(r)
  end
  wake(SETTLED)
  local kept = keep(r)
  if kept == 'a' or (kept == 'f' and to ~= 'S') then
    r.finishedAt, r.reason = nowText, reason or '-'
    setTexts(r, result or '', err or '')
    endings[#endings + 1] = nextNumber()
    endings[#endings + 1] = r.n
    if not simple and r.sched ~= '-' then redis.call('ZADD', KEYS[1] .. 'l:' .. r.sched, r.n, r.n) end
  else
    -- What the history does not keep of a skipped tick, the skips do.
    if reason and not simple and r.origin == 't' then addSkip(r.sched, r.tick, r.tick, '1', reason)
    elseif reason and isTicket(r.n) then
      -- Its run has to be told.
      redis.call('HSET', KEYS[1] .. 'notices', r.n, reason)
      wake(TICKETS)
    end
    forget(r)
  end
end

-- Removes a run that has not begun, as if it had never been recorded.
local function unrecord(r)
  dropTicket(r)
  withdraw(r)
  disengage(fixed(r))
  forget(r)
end

-- A running run becomes ready again, at once or later.
local function giveBack(r, readyAt)
  if not plain(r) and fixed(r).key ~= '-' then freeKey(r) end
  r.readyAt = int(readyAt)
  makeReady(r)
end

-- Takes a run from whoever runs it: its token settles no more, and it is ready for another.
function takeOver(r, died)
  if r.cancel == '1' then
    endRun(r, 'C')
    return 'ended'
  end
  if died and tonumber(r.takeovers) >= MAX_TAKEOVERS then
    local message = string.format('${LOST_MESSAGE}', r.takeovers + 1, unescape(r.inst))
    endRun(r, 'F', nil, '{"code":"LOST","message":' .. cjson.encode(message) .. '}')
    return 'lost'
  end
  giveBack(r, now)
  r.rescued = died and '1' or '0'
  return 'ready'
end

local function requestCancel(r)
  r.cancel = '1'
  change(r)
  redis.call('HSET', KEYS[1] .. 'ir:' .. r.inst, r.n, r.claim .. ' ' .. r.token .. ' 1')
  wake(ATTEMPTS)
end

-- What a schedule has unfinished that is due, waits, or began; at the most so many of each, and of the waiting the newest.
local function engagedRuns(sched, most)
  ripenLane(sched)
  local ns = redis.call('ZRANGE', KEYS[1] .. 'e:' .. sched, 0, most and most - 1 or -1)
  for _, n in ipairs(redis.call('ZRANGE', KEYS[1] .. 'w:' .. sched, most and -most or 0, -1)) do ns[#ns + 1] = n end
  loadAll(ns)
  local found = {}
  for _, n in ipairs(ns) do if runs[n] then found[#found + 1] = runs[n] end end
  return found
end

-- Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped.
local function makeWay(sched)
  for _, r in ipairs(engagedRuns(sched)) do
    if r.st == 'X' then requestCancel(r)
    elseif r.attempt ~= '0' then endRun(r, 'C')
    else endRun(r, 'K', 'overlap') end
  end
end

local function finish()
  handOn()
  saveRuns()
  saveNames()
  saveSeq()
end`
