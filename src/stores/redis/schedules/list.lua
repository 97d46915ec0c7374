-- schedules/list.lua: returns schedules in order of id (contract: schedules.list). It only reads.
-- Keys: schedules, and schedule-ids or schedules-unstamped.
local ids = redis.call('ZRANGEBYLEX', key(given.unstamped and 'schedules-unstamped' or 'schedule-ids'), given.from, '+',
  'LIMIT', 0, given.limit)
local texts = readMany('HMGET', key('schedules'), ids)
local found = {}
for at, id in ipairs(ids) do found[at] = { id = id, text = texts[at] or nil } end
return reply({ schedules = found })
