-- include: locks/pass-on
-- cluster/tickets/delivered.lua: removes messages from a shard's outbox after the other shard has received them
-- (tickets.ts). Safe to repeat.
-- Keys: ticket-sent, ticket-wanted, ticket-checked, ticket-unwanted, ticket-skipped, ticket-refused, runs.
local REFUSED_MS = 60000

for _, each in ipairs(given.sent) do
  redis.call('SREM', key('ticket-checked'), each.run)
  -- A run that has changed since the outbox was read stays in ticket-wanted, so that its ticket is sent again.
  local run = runs.load(each.run)
  if run and run.state == each.state and run.attempt == each.attempt and redis.call('ZREM', key('ticket-wanted'), each.run) == 1 then
    redis.call('ZADD', key('ticket-sent'), now, each.run)
  end
end

-- The key of these runs was busy when their tickets arrived, so each run is removed as if it had never been enqueued.
-- The enqueue call reads ticket-refused right after this script, and returns `busy` with the run that has the key.
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
