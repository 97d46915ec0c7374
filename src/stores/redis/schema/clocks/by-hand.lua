-- The clock of tests: it is turned by hand, and all shards of one server share it. Its milliseconds stand still; below
-- them it moves on with every script and every number that a script gives out, so that what came first is older. Nothing
-- expires meanwhile. Shards of a cluster cannot share it: each is told the time and where to count from, in `told`.
local clock = {}
do
  local toldNow, toldCount = string.match(redis.call('GET', KEYS[1] .. 'told') or '', '^(%d+) (%d+)')
  clock.name = toldNow and KEYS[1] .. 'own' or string.match(KEYS[1], '^(.*){') .. '{0}:clock'
  clock.countFrom = tonumber(toldCount) or redis.call('INCR', clock.name)
  clock.nowUs = toldNow and toldNow * 1000 or math.floor(clock.countFrom / 1000) * 1000
end
function clock.countedTo(last)
  redis.call('SET', clock.name, string.format('%.0f', math.max(last, clock.countFrom)))
end
