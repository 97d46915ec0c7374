/**
 * A run as text: see `run-text.ts` for what is in it. Scripts read the first line of a run, which is all that changes in
 * most steps of its life, and the second only where it matters. What a script changed is written when it ends.
 */
export const RUN_RECORD = `
local HEAD = '^' .. string.rep('([^ ]+) ', 18) .. '([^ \\n]+)()'
local FIXED = '^\\n' .. string.rep('([^ ]+) ', 11) .. '([^ \\n]+)()'
local runs, changed = {}, {}
local runningAdded, runningGone, endings, unended = {}, {}, {}, {}

local function parse(n, text)
  local st, wait, attempt, failures, takeovers, token, claim, rescued, cancel, readyAt, startBy, createdAt, startedAt,
    finishedAt, settled, tick, reason, inst, kind, at = string.match(text, HEAD)
  local r = { n = n, st = st, wait = wait, attempt = attempt, failures = failures, takeovers = takeovers, token = token,
    claim = claim, rescued = rescued, cancel = cancel, readyAt = readyAt, startBy = startBy, createdAt = createdAt,
    startedAt = startedAt, finishedAt = finishedAt, settled = settled, tick = tick, reason = reason, inst = inst,
    kind = kind, rest = string.sub(text, at), changed = false }
  runs[n] = r
  return r
end

local function load(n)
  local r = runs[n]
  if r ~= nil then return r end
  local text = redis.call('HGET', KEYS[1] .. 'runs', n)
  if text then return parse(n, text) end
  runs[n] = false
  return false
end

-- Does something with every run that is there, in order, and its text.
local function eachText(ns, work)
  for first = 1, #ns, 2000 do
    local texts = redis.call('HMGET', KEYS[1] .. 'runs', unpack(ns, first, math.min(first + 1999, #ns)))
    for at = 1, #texts do work(ns[first + at - 1], texts[at]) end
  end
end

local function loadAll(ns)
  eachText(ns, function(n, text)
    if runs[n] ~= nil then return end
    if text then parse(n, text) else runs[n] = false end
  end)
end

local function change(r)
  if not r.changed then
    r.changed = true
    changed[#changed + 1] = r
  end
end

-- A run that was changed without being taken apart: nothing else of it is needed in the same script.
local function changeText(n, text)
  local r = { n = n, text = text, changed = true }
  changed[#changed + 1] = r
  return r
end

-- Most runs are plain: without a key, a schedule, or anything to dedupe by.
local function plain(r) return string.byte(r.kind) == 112 end
local function keep(r) return string.sub(r.kind, 2, 2) end

local function fixed(r)
  if not r.origin then
    r.origin, r.prio, r.keep, r.target, r.sched, r.backfill, r.key, r.limit, r.busy, r.unst, r.dedupe, r.dedupeMs, r.at =
      string.match(r.rest, FIXED)
    -- A key of another shard is none here: a ticket stands in its line there.
    if string.byte(r.unst) == 114 then r.remote, r.remoteKey, r.key = string.sub(r.unst, 2), r.key, '-' end
  end
  return r
end

local function fixedText(r)
  return '\\n' .. table.concat({ r.origin, r.prio, r.keep, r.target, r.sched, r.backfill, r.remoteKey or r.key, r.limit,
    r.busy, r.unst, r.dedupe, r.dedupeMs }, ' ')
end

-- Result and error, as JSON or nothing.
local function setTexts(r, result, err)
  local fixedEnd = string.find(r.rest, '\\n', 2, true)
  local resultEnd = string.find(r.rest, '\\n', fixedEnd + 1, true)
  local errorEnd = string.find(r.rest, '\\n', resultEnd + 1, true)
  if resultEnd == fixedEnd + 1 and errorEnd == resultEnd + 1 and result == '' and err == '' then return end
  r.rest = string.sub(r.rest, 1, fixedEnd) .. result .. '\\n' .. err .. string.sub(r.rest, errorEnd)
end

local function textOf(r)
  return r.st .. ' ' .. r.wait .. ' ' .. r.attempt .. ' ' .. r.failures .. ' ' .. r.takeovers .. ' ' .. r.token .. ' ' ..
    r.claim .. ' ' .. r.rescued .. ' ' .. r.cancel .. ' ' .. r.readyAt .. ' ' .. r.startBy .. ' ' .. r.createdAt .. ' ' ..
    r.startedAt .. ' ' .. r.finishedAt .. ' ' .. r.settled .. ' ' .. r.tick .. ' ' .. r.reason .. ' ' .. r.inst .. ' ' ..
    r.kind .. r.rest
end

-- A run that is ready at an instant, as text.
local function newText(readyAt, startBy, tick, kind, rest)
  return 'R - 0 0 0 - 0 0 0 ' .. readyAt .. ' ' .. startBy .. ' ' .. nowText .. ' - - - ' .. tick .. ' - - ' .. kind .. rest
end

local function collect(lists, name)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  return list
end

local function saveRuns()
  local written, gone = {}, {}
  for _, r in ipairs(changed) do
    if r.gone then gone[#gone + 1] = r.n
    else
      written[#written + 1] = r.n
      written[#written + 1] = r.text or textOf(r)
    end
  end
  for inst, ns in pairs(runningGone) do batch('HDEL', KEYS[1] .. 'ir:' .. inst, ns) end
  for inst, pairs_ in pairs(runningAdded) do batch('HSET', KEYS[1] .. 'ir:' .. inst, pairs_) end
  batch('HSET', KEYS[1] .. 'runs', written)
  batch('HDEL', KEYS[1] .. 'runs', gone)
  batch('ZREM', KEYS[1] .. 'all', gone)
  batch('ZADD', KEYS[1] .. 'ended', endings)
  batch('ZREM', KEYS[1] .. 'ended', unended)
end`
