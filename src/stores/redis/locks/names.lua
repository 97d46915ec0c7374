-- locks/names.lua: names that are known, in their order. Keys: lock-names, which may have names without holders.
return reply({ names = redis.call('ZRANGEBYLEX', key('lock-names'), given.from, '+', 'LIMIT', 0, given.limit) })
