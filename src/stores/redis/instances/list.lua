-- instances/list.lua: returns the texts of all instances (contract: instances.list). Keys: instances, instance. It only
-- reads.
local texts = {}
for _, id in ipairs(redis.call('ZRANGE', key('instances'), 0, -1)) do
  local text = redis.call('GET', key('instance', id))
  if text then texts[#texts + 1] = text end
end
return reply({ texts = texts })
