-- include: schedules/take-back
-- schedules/read.lua: schedules with what a decision about them rests on. schedules/write.lua compares it again.
-- Keys: schedules, and the runs and sets of each. It moves runs that have become due, and else only looks.
local found = {}
for at, text in ipairs(readMany('HMGET', key('schedules'), given.ids)) do
  found[at] = { text = text or '', unclaimed = text and takeBack.unclaimedText(given.ids[at]) or '' }
end
return reply({ now = now, found = found })
