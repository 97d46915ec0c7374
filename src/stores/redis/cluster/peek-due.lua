-- cluster/peek-due.lua: returns when the first schedules of a shard are due (peek.ts). It only reads.
-- Keys: schedule-due.
local horizon = int(now + given.lookaheadMs + 1)
local due = redis.call('ZRANGEBYSCORE', key('schedule-due'), '-inf', '(' .. horizon, 'WITHSCORES', 'LIMIT', 0, given.limit)
local instants = {}
for at = 2, #due, 2 do instants[#instants + 1] = due[at] end
local first = redis.call('ZRANGE', key('schedule-due'), 0, 0, 'WITHSCORES')[2]
return reply({ now = now, dueAt = instants, nextDueAt = first and math.floor(first) })
