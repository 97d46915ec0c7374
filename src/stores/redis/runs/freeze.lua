-- runs/freeze.lua: stops the start of runs, or allows it again (contract: freeze, thaw). If runs are stopped already,
-- the first note stays. Keys: meta, field `frozen`.
if given.frozen then redis.call('HSETNX', key('meta'), 'frozen', cjson.encode({ at = now, note = given.note }))
else
  redis.call('HDEL', key('meta'), 'frozen')
  wake('runs')
end
return reply({})
