-- When an instance with a set of declarations last proved life, for sets that were declared.
local function noteDeclarationsAlive(instance)
  if not instance.app or not instance.declarations then return end
  if redis.call('HEXISTS', key('declared-sets', instance.app), instance.declarations) == 1 then
    redis.call('HSET', key('declared-alive', instance.app), instance.declarations, int(now))
  end
end
