-- include: locks/pass-on
-- cluster/tickets/delivered.lua: removes messages from the outbox that another shard has received (tickets.ts). Safe to
-- repeat.
-- Keys: ticket-sent, ticket-wanted, ticket-checked, ticket-unwanted, ticket-skipped, ticket-refused, runs.
local REFUSED_MS = 60000

for _, each in ipairs(given.sent) do
  redis.call('SREM', key('ticket-checked'), each.run)
  -- A run that has changed since the outbox was read must send its ticket once more.
  local run = runs.load(each.run)
  if run and run.state == each.state and run.attempt == each.attempt and redis.call('ZREM', key('ticket-wanted'), each.run) == 1 then
    redis.call('ZADD', key('ticket-sent'), now, each.run)
  end
end

-- Its key was busy, so it is not enqueued after all. Its enqueue asks for this answer right away.
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
