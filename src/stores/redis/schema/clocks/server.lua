-- The clock of a script: the server's. Every script begins with one of the files in this folder.
local clock = {}
do
  local time = redis.call('TIME')
  clock.nowUs = time[1] * 1000000 + time[2]
end
-- The lowest number that a script may issue: see schema/numbers.lua.
clock.countFrom = clock.nowUs
function clock.countedTo() end
