-- schedules/skips.lua: ranges of skipped ticks that end at an instant or later (contract: schedules.skips).
-- Keys: schedule-skips. It only looks.
return reply({ ranges = redis.call('ZRANGEBYSCORE', key('schedule-skips', given.schedule), int(given.from), '+inf', 'LIMIT',
  0, given.limit) })
