-- locks/names.lua: names that are known, in their order. Keys: lock-names, which may have names that nobody holds any more.
return reply({ names = redis.call('ZRANGEBYLEX', key('lock-names'), given.from, '+', 'LIMIT', 0, given.limit) })
