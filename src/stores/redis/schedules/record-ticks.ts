/**
 * Writing plans. Most of them record one tick and move the schedule to the next, and many schedules of a batch do so at
 * the same instants: what they have in common is said once, and each adds only its id and the beginning of its line.
 */

import { runScript } from '../connection/script.js'
import { TEMPLATE_ARGS } from './definitions.js'
import { UNFINISHED } from './due-schedules.js'

/** How many arguments a plan has that is written by itself. */
export const PLAN_ARGS = 10

/**
 * Arguments: from where to number; a mark to remove, or nothing; the templates; the ids; then the plans in the order of the ids, in stretches:
 * `=` with what its plans have in common and, as one text, the beginning of each line; or `x` with a single plan in full.
 */
export const RECORD = runScript(`${UNFINISHED}
numbersFrom(ARGV[1])
if ARGV[2] ~= '' then redis.call('HDEL', KEYS[1] .. 'planners', ARGV[2]) end
local templates, at = {}, 4
for index = 1, tonumber(ARGV[3]) do
  templates[tostring(index)] = { prio = ARGV[at], target = ARGV[at + 1], kind = ARGV[at + 2], before = '\\n' .. ARGV[at + 3] .. ' ',
    after = ' ' .. ARGV[at + 4] .. '\\n\\n\\n' .. ARGV[at + 5] .. '\\n', keyed = ARGV[at + 2]:byte() == 120 }
  at = at + ${TEMPLATE_ARGS}
end

-- The ids stand before all plans, and are looked up by one command.
local ids, place = at, 0
local found = redis.call('HMGET', KEYS[1] .. 's', unpack(ARGV, ids + 1, ids + ARGV[ids]))
at = ids + ARGV[ids] + 1

local recorded, skipped = 0, 0
local texts, due, written, numbered, added = {}, {}, {}, {}, {}
local find, sub, call = string.find, string.sub, redis.call

-- A former schedule of this id may have had a tick at an instant that this one reaches back to.
local function isKnown(sched, tick)
  for _, set in ipairs({ 'e:', 'w:', 'l:' }) do
    local ns = redis.call('ZREVRANGE', KEYS[1] .. set .. sched, 0, 999)
    loadAll(ns)
    for _, n in ipairs(ns) do
      if runs[n] and runs[n].tick == tick and fixed(runs[n]).origin == 't' then return true end
    end
  end
  return false
end

local function payloadOf(text, head) return sub(text, find(text, '\\n', #head + 1, true) + 1) end

local function number()
  local n, place = nextNumber(), #numbered
  recorded = recorded + 1
  numbered[place + 1], numbered[place + 2] = n, n
  return n
end

local function record(sched, t, payload, tick, readyAt, startBy, flags)
  if find(flags, 'k', 1, true) and isKnown(sched, tick) then return end
  if readyAt == '=' then readyAt = tick end
  local n, text = number(), newText(readyAt, startBy, tick, t.kind, t.before .. sched .. t.after .. payload)
  if flags == '-' and not t.keyed then
    local queue = collect(added, t)
    queue[#queue + 1], written[#written + 1] = readyAt, n
    queue[#queue + 1], written[#written + 1] = n, text
    call('ZADD', KEYS[1] .. 'e:' .. sched, n, n)
    return
  end
  local r = parse(n, text)
  r.new = true
  change(r)
  if find(flags, 'w', 1, true) then
    makeWait(r, 'o')
    touch(touchedLanes, sched)
  else makeReady(r) end
end

-- Under a policy that drops what was missed, older ticks that never began are taken back.
local function retract(sched, through)
  for _, r in ipairs(engagedRuns(sched)) do
    if r.attempt == '0' and fixed(r).origin == 't' and tonumber(r.tick) <= tonumber(through) then endRun(r, 'K', 'missed') end
  end
end

local FOUR = '([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)'

local function apply(id, sched, p, text, head)
  local t, lineAfter, dueAt, goes, through, cancels, ticks, skips =
    templates[ARGV[p + 2]], ARGV[p + 3], ARGV[p + 4], ARGV[p + 5], ARGV[p + 6], ARGV[p + 7], ARGV[p + 8], ARGV[p + 9]
  if through ~= '-' then retract(sched, through) end
  if cancels == '1' then makeWay(sched) end
  if ticks ~= '' then
    local payload = payloadOf(text, head)
    for a, b, c, d in string.gmatch(ticks, FOUR) do record(sched, t, payload, a, b, c, d) end
  end
  for from, to, count, reason in string.gmatch(skips, FOUR) do
    addSkip(sched, from, to, count, reason)
    skipped = skipped + tonumber(count)
  end
  texts[#texts + 1] = id
  texts[#texts + 1] = lineAfter .. sub(text, #head)
  if dueAt == '-' then call('ZREM', KEYS[1] .. 'due', id)
  else
    due[#due + 1] = inLine(dueAt)
    due[#due + 1] = id
  end
  if goes ~= '-' then call('ZADD', KEYS[1] .. 'fin', goes, sched) end
end

local function linesOf(text)
  local lines = {}
  for line in string.gmatch(text, '[^\\n]+') do lines[#lines + 1] = line end
  return lines
end

-- One tick for each of many schedules that allow overlap, have no key, and go from the same instants to the same. This is
-- what most ticks come to, so it does little else.
local function applyAlike(first, count)
  local t, tick, readyAt, startBy, dueAt, from, to =
    templates[ARGV[first]], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3], ARGV[first + 4], ARGV[first + 5], ARGV[first + 6]
  local text = newText(readyAt, startBy, tick, t.kind, t.before)
  local after, lane, queue = t.after, KEYS[1] .. 'e:', collect(added, t)
  local q, w, s = #queue, #written, #texts
  local a, d = #numbered, #due
  local starts = {}
  for index = 1, count do
    local stored = found[place + index]
    local moving = stored and find(stored, from, 1, true)
    starts[index] = moving and sub(stored, 1, moving - 1) or '-'
  end
  local wanted = table.concat(starts, '\\n') == ARGV[first + 7] and starts or linesOf(ARGV[first + 7])
  for index = 1, count do
    local id, stored, start = ARGV[ids + place + index], found[place + index], starts[index]
    if start == wanted[index] then
      local n, rest = nextNumber(), #start + #from
      written[w + 1], written[w + 2] = n, text .. id .. after .. sub(stored, find(stored, '\\n', rest + 1, true) + 1)
      queue[q + 1], queue[q + 2] = readyAt, n
      numbered[a + 1], numbered[a + 2] = n, n
      texts[s + 1], texts[s + 2] = id, start .. to .. sub(stored, rest)
      due[d + 1], due[d + 2] = inLine(dueAt), id
      q, w, s, a, d = q + 2, w + 2, s + 2, a + 2, d + 2
      recorded = recorded + 1
      call('ZADD', lane .. id, n, n)
    end
  end
end

while at <= #ARGV do
  if ARGV[at] == '=' then
    local alike = tonumber(ARGV[at + 1])
    applyAlike(at + 2, alike)
    place, at = place + alike, at + 10
  else
    place = place + 1
    local id, text, head = ARGV[ids + place], found[place], ARGV[at + 1]
    local sched = escape(id)
    if text and find(text, head, 1, true) == 1 and (string.byte(text) == 97 or unfinishedText(sched) == ARGV[at + 2]) then
      apply(id, sched, at + 1, text, head)
    end
    at = at + 1 + ${PLAN_ARGS}
  end
end
batch('HSET', KEYS[1] .. 's', texts)
batch('ZADD', KEYS[1] .. 'due', due)
batch('HSET', KEYS[1] .. 'runs', written)
batch('ZADD', KEYS[1] .. 'all', numbered)
for t, pairs_ in pairs(added) do
  if #pairs_ > 0 then
    knowQueue(t.prio, t.target)
    batch('ZADD', KEYS[1] .. 'q:' .. t.prio .. ':' .. t.target, pairs_)
  end
end
if recorded > 0 then wake(RUNS) end
if #due > 0 then wake(SCHEDULES) end
finish()
local first = call('ZRANGE', KEYS[1] .. 'due', 0, 0, 'WITHSCORES')[2]
return { recorded, skipped, first and int(math.floor(first)) or '-', wakes }`)
