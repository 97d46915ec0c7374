-- schedules/list.lua: schedules in order of id (contract: schedules.list). Keys: schedules, and schedule-ids or
-- schedules-unstamped. It only looks.
local ids = redis.call('ZRANGEBYLEX', key(given.unstamped and 'schedules-unstamped' or 'schedule-ids'), given.from, '+',
  'LIMIT', 0, given.limit)
local texts = readMany('HMGET', key('schedules'), ids)
local found = {}
for at, id in ipairs(ids) do found[at] = { id = id, text = texts[at] or nil } end
return reply({ schedules = found })
