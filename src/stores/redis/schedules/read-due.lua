-- include: runs/overlap
-- schedules/read-due.lua: returns due schedules, with what planning them needs (contract: schedules.advance, first
-- step).
--
-- Two processes that plan at the same time would plan the same schedules. So each planner leaves a mark in `planners`,
-- which lasts half a second and is removed with its last plan. A planner that finds the mark of another skips as many
-- schedules (`behind`) as that one may take. The marks only divide the work: without them the result is the same.
-- Keys: schedules, schedule-due, planners, and the schedule-* sets of each schedule.
local MARK_MS = 500

local offset, marks = 0, redis.call('HGETALL', key('planners'))
for at = 1, #marks, 2 do
  if tonumber(marks[at + 1]) <= now then redis.call('HDEL', key('planners'), marks[at])
  elseif marks[at] ~= given.planner then offset = offset + given.behind end
end

local horizon = int(now + given.lookaheadMs + 1)
local ids = redis.call('ZRANGEBYSCORE', key('schedule-due'), '-inf', '(' .. horizon, 'LIMIT', offset, given.limit)
local due = {}
if #ids > 0 then
  redis.call('HSET', key('planners'), given.planner, int(now + MARK_MS))
  for at, text in ipairs(readMany('HMGET', key('schedules'), ids)) do
    if text then
      -- Leaves out the last line, the payload, which the planner does not need.
      local lineEnd = string.find(text, '\n', 1, true)
      local definitionEnd = string.find(text, '\n', lineEnd + 1, true)
      due[#due + 1] = { id = ids[at], text = string.sub(text, 1, definitionEnd - 1),
        unfinished = not overlap.isAllowed(text) and overlap.unfinishedText(ids[at]) or nil }
    end
  end
end
local first = redis.call('ZRANGE', key('schedule-due'), 0, 0, 'WITHSCORES')[2]
return reply({ now = now, found = #ids, due = due, nextDueAt = first and math.floor(first) })
