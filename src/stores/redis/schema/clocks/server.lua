-- The clock of a script: the server's. Every script begins with one of the files in this folder.
local clock = {}
do
  local time = redis.call('TIME')
  clock.nowUs = time[1] * 1000000 + time[2]
end
-- Numbers that a script gives out begin here: schema/numbers.lua.
clock.countFrom = clock.nowUs
function clock.countedTo() end
