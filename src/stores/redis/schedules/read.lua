-- include: schedules/take-back
-- schedules/read.lua: returns schedules, with what a decision about them is based on. schedules/write.lua compares both
-- before it writes. Keys: schedules, and the runs and schedule-* sets of each. It moves runs that have become due from
-- one set to another, and otherwise only reads.
local found = {}
for at, text in ipairs(readMany('HMGET', key('schedules'), given.ids)) do
  found[at] = { text = text or '', unclaimed = text and takeBack.unclaimedText(given.ids[at]) or '' }
end
return reply({ now = now, found = found })
