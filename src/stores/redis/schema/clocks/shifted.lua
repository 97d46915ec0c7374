-- The clock of benches: the server's plus the microseconds in the key `shift`.
local clock = {}
do
  local time = redis.call('TIME')
  clock.nowUs = time[1] * 1000000 + time[2] + (redis.call('GET', KEYS[1] .. 'shift') or 0)
end
clock.countFrom = clock.nowUs
function clock.countedTo() end
