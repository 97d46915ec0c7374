-- include: locks/pass-on
-- cluster/tickets/delivered.lua: the other shard has received what the outbox said (tickets.ts). Safe to repeat.
-- Keys: ticket-sent, ticket-wanted, ticket-checked, ticket-unwanted, ticket-skipped, ticket-refused, runs.
local REFUSED_MS = 60000

for _, each in ipairs(given.sent) do
  redis.call('SREM', key('ticket-checked'), each.run)
  -- One that was waiting when its ticket was sent, and is ready now, has to be sent again.
  local run = runs.load(each.run)
  if run and run.state == each.state and redis.call('ZREM', key('ticket-wanted'), each.run) == 1 then
    redis.call('ZADD', key('ticket-sent'), now, each.run)
  end
end

-- Its key was busy: it was not enqueued after all. Its enqueue asks right away what became of it.
for _, each in ipairs(given.refused) do
  local run = redis.call('SISMEMBER', key('ticket-checked'), each.run) == 1 and runs.load(each.run)
  if run then
    redis.call('SET', key('ticket-refused', each.run), each.winner, 'PX', REFUSED_MS)
    dedupe.forget(run)
    transitions.unrecord(run)
  end
end

batch('HDEL', key('ticket-unwanted'), given.unwanted)
batch('HDEL', key('ticket-skipped'), given.skipped)
commit()
return reply({})
