-- runs/freeze.lua: stops and allows starting runs (contract: freeze, thaw). The first note stays. Keys: meta, field `frozen`.
if given.frozen then redis.call('HSETNX', key('meta'), 'frozen', cjson.encode({ at = now, note = given.note }))
else
  redis.call('HDEL', key('meta'), 'frozen')
  wake('runs')
end
return reply({})
