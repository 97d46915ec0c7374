-- Reads and writes the texts of instances. The layout is in instances/instance-codec.ts: scripts use the first line as
-- a table, and keep the second one as unparsed text (`info`).
local instances = {}
whenUsed(instances, function()
  local known = {}

  function instances.load(id)
    local instance = known[id]
    if instance == nil then
      local text = redis.call('GET', key('instance', id))
      if text then
        local lineEnd = string.find(text, '\n', 1, true)
        instance = cjson.decode(string.sub(text, 1, lineEnd - 1))
        instance.info = string.sub(text, lineEnd + 1)
      else instance = false end
      known[id] = instance
    end
    return instance or nil
  end

  function instances.save(id, instance)
    known[id] = instance
    local info = instance.info
    instance.info = nil
    redis.call('SET', key('instance', id), cjson.encode(instance) .. '\n' .. info)
    instance.info = info
  end

  -- If the instance's set of schedules was declared, records that an instance with this set is alive now.
  function instances.noteDeclarations(instance)
    local app, set = instance.app, instance.declarations
    if app and set and redis.call('HEXISTS', key('declared-sets', app), set) == 1 then
      redis.call('HSET', key('declared-alive', app), set, int(now))
    end
  end

  function instances.isAlive(id)
    local instance = instances.load(id)
    return instance ~= nil and not instance.dead and instance.expiresAt > now
  end

  -- When the lease of the runs of an instance expires. For an unknown instance it has expired.
  function instances.expiresAt(id)
    local instance = instances.load(id)
    return instance and instance.expiresAt or 0
  end

  -- The same for the instance's tickets, a tenth of the lease later. A ticket's run is in another shard, which may have
  -- received the beat a moment later, and the key must not be free before the run's lease has expired there.
  function instances.ticketsExpireAt(id)
    local instance = instances.load(id)
    return instance and instance.expiresAt + (instance.expiresAt - instance.beatAt) / 10 or 0
  end
end)
