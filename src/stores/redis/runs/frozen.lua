-- runs/frozen.lua: whether starting runs is stopped, since when and with which note. Keys: meta, field `frozen`.
return reply({ frozen = redis.call('HGET', key('meta'), 'frozen') or nil })
