-- include: locks/pass-on
-- schedules/record-ticks.lua: writes plans: ticks, skips and cursors (contract: schedules.advance, second step).
--
-- A plan is written only if what it was made from is unchanged: the schedule's first line, which has version and
-- cursor, and the schedule's unfinished runs, unless its ticks may overlap. Otherwise another instance has changed the
-- schedule, and the plan is dropped. So a tick is recorded once. The layout of a schedule's text is in
-- schedules/schedule-codec.ts.
-- Keys: schedules, schedule-due, schedules-finished, planners; runs, queues, schedule-* and key-* sets.
-- Crash: either everything or nothing was written. Reply lost: the schedules are no longer due.
numbers.startFrom(given.startFrom)
if given.removesMark then redis.call('HDEL', key('planners'), given.planner) end

local recorded, skipped, texts, due = 0, 0, {}, {}

-- Whether a run of this tick exists. A schedule may have ticks before its own creation, and a removed schedule with the
-- same id may have recorded those.
local function isKnown(schedule, tick)
  for _, set in ipairs({ 'schedule-engaged', 'schedule-waiting', 'schedule-ended' }) do
    for _, run in ipairs(runs.loadMany(redis.call('ZREVRANGE', key(set, schedule), 0, 999))) do
      if run.tick == tick and run.origin == 'tick' then return true end
    end
  end
  return false
end

local function record(plan, payload, tick)
  if tick.mayBeKnown and isKnown(plan.id, tick.at) then return end
  local run = { tick = tick.at, readyAt = tick.readyAt, startBy = tick.startBy, byDeadline = tick.byDeadline }
  for field, value in pairs(plan.run) do run[field] = value end
  runs.add(run, plan.options .. '\n' .. payload)
  recorded = recorded + 1
  if tick.waits then
    transitions.makeWait(run, 'overlap')
    overlap.mayBeFree(plan.id)
  else transitions.makeReady(run) end
end

-- Under a policy that drops missed ticks, skips older ticks whose runs have never started.
local function retract(schedule, through)
  for _, run in ipairs(overlap.unfinished(schedule)) do
    if run.attempt == 0 and run.origin == 'tick' and run.tick <= through then
      transitions.finish(run, 'skipped', { reason = 'missed' })
    end
  end
end

local function apply(plan, text)
  if plan.retractThrough then retract(plan.id, plan.retractThrough) end
  if plan.cancelsUnfinished then transitions.makeWay(plan.id) end
  if #plan.ticks > 0 then
    local definitionEnd = string.find(text, '\n', #plan.from + 2, true)
    local payload = string.sub(text, definitionEnd + 1)
    for _, tick in ipairs(plan.ticks) do record(plan, payload, tick) end
  end
  for _, range in ipairs(plan.skips or {}) do
    transitions.addSkip(plan.id, range.from, range.to, range.count, range.reason)
    skipped = skipped + range.count
  end
  texts[#texts + 1] = plan.id
  texts[#texts + 1] = plan.to .. string.sub(text, #plan.from + 1)
  if plan.dueAt then
    due[#due + 1] = numbers.inLine(plan.dueAt)
    due[#due + 1] = plan.id
  else redis.call('ZREM', key('schedule-due'), plan.id) end
  if plan.goesAt then redis.call('ZADD', key('schedules-finished'), plan.goesAt, plan.id) end
end

local ids = {}
for at, plan in ipairs(given.plans) do ids[at] = plan.id end
for at, text in ipairs(readMany('HMGET', key('schedules'), ids)) do
  local plan = given.plans[at]
  -- Compares the line break, too: otherwise a longer first line with the same beginning would match.
  local isSame = text and string.sub(text, 1, #plan.from + 1) == plan.from .. '\n'
  if isSame and (overlap.isAllowed(text) or overlap.unfinishedText(plan.id) == plan.unfinished) then apply(plan, text) end
end
batch('HSET', key('schedules'), texts)
batch('ZADD', key('schedule-due'), due)
if #due > 0 then wake('schedules') end
commit()
local first = redis.call('ZRANGE', key('schedule-due'), 0, 0, 'WITHSCORES')[2]
return reply({ recorded = recorded, skipped = skipped, nextDueAt = first and math.floor(first) })
