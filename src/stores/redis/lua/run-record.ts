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
  local r, at = { n = n }
  r.st, r.wait, r.attempt, r.failures, r.takeovers, r.token, r.claim, r.rescued, r.cancel, r.readyAt, r.startBy,
    r.createdAt, r.startedAt, r.finishedAt, r.settled, r.tick, r.reason, r.inst, r.kind, at = match(text, HEAD)
  r.rest = sub(text, at)
  runs[n] = r
  return r
end

local function load(n)
  local r = runs[n]
  if r ~= nil then return r end
  local text = call('HGET', P .. 'runs', n)
  if text then return parse(n, text) end
  runs[n] = false
  return false
end

local function loadAll(ns)
  for first = 1, #ns, 2000 do
    local last = math.min(first + 1999, #ns)
    local texts = call('HMGET', P .. 'runs', unpack(ns, first, last))
    for at = 1, #texts do
      local n = ns[first + at - 1]
      if runs[n] == nil then
        if texts[at] then parse(n, texts[at]) else runs[n] = false end
      end
    end
  end
end

local function change(r)
  if not r.changed then
    r.changed = true
    changed[#changed + 1] = r
  end
end

-- Most runs are plain: without a key, a schedule, or anything to dedupe by.
local function plain(r) return string.byte(r.kind) == 112 end
local function keep(r) return sub(r.kind, 2, 2) end

local function fixed(r)
  if not r.origin then
    r.origin, r.prio, r.keep, r.target, r.sched, r.backfill, r.key, r.limit, r.busy, r.unst, r.dedupe, r.dedupeMs, r.at =
      match(r.rest, FIXED)
  end
  return r
end

local function fixedText(r)
  return '\\n' .. table.concat({ r.origin, r.prio, r.keep, r.target, r.sched, r.backfill, r.key, r.limit, r.busy, r.unst,
    r.dedupe, r.dedupeMs }, ' ')
end

-- Result and error, as JSON or nothing.
local function setTexts(r, result, err)
  local fixedEnd = find(r.rest, '\\n', 2, true)
  local resultEnd = find(r.rest, '\\n', fixedEnd + 1, true)
  local errorEnd = find(r.rest, '\\n', resultEnd + 1, true)
  if resultEnd == fixedEnd + 1 and errorEnd == resultEnd + 1 and result == '' and err == '' then return end
  r.rest = sub(r.rest, 1, fixedEnd) .. result .. '\\n' .. err .. sub(r.rest, errorEnd)
end

local function textOf(r)
  return table.concat({ r.st, r.wait, r.attempt, r.failures, r.takeovers, r.token, r.claim, r.rescued, r.cancel, r.readyAt,
    r.startBy, r.createdAt, r.startedAt, r.finishedAt, r.settled, r.tick, r.reason, r.inst, r.kind }, ' ') .. r.rest
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
  for inst, ns in pairs(runningGone) do batch('HDEL', P .. 'ir:' .. inst, ns) end
  for inst, pairs_ in pairs(runningAdded) do batch('HSET', P .. 'ir:' .. inst, pairs_) end
  batch('HSET', P .. 'runs', written)
  batch('HDEL', P .. 'runs', gone)
  batch('ZREM', P .. 'all', gone)
  batch('ZADD', P .. 'ended', endings)
  batch('ZREM', P .. 'ended', unended)
end`
