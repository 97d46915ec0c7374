-- The clock of tests, which the test sets. All shards of one server share it. Its milliseconds stand still until the
-- test moves them. Its microseconds advance with each script and each number that a script issues, so that older items
-- have lower numbers. Shards of a cluster cannot share a key, so the test writes to each shard's key `told` the time
-- and the first number.
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
