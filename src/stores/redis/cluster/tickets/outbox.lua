-- include: runs/loaded-runs
-- cluster/tickets/outbox.lua: returns the messages of a shard's runs and tickets to other shards (tickets.ts). The
-- messages stay until delivered.lua removes them, after they have arrived.
-- Keys: ticket-wanted, ticket-sent, ticket-unwanted, ticket-skipped, ticket-checked, runs.

-- If a run has not started this long after its ticket was sent, the ticket is sent again: a failover may have lost it.
local RESEND_MS = 10000

for _, number in ipairs(redis.call('ZRANGEBYSCORE', key('ticket-sent'), '-inf', now - RESEND_MS, 'LIMIT', 0, 200)) do
  redis.call('ZREM', key('ticket-sent'), number)
  redis.call('ZADD', key('ticket-wanted'), now, number)
end

local wanted, unwanted, skipped = {}, {}, {}
for _, number in ipairs(redis.call('ZRANGE', key('ticket-wanted'), 0, 499)) do
  local run = runs.load(number)
  if run and (run.state == 'ready' or run.state == 'waiting') and run.keyShard then
    wanted[#wanted + 1] = { shard = run.keyShard, run = number, attempt = run.attempt, readyAt = int(run.readyAt),
      startBy = run.startBy and int(run.startBy), byDeadline = run.byDeadline, priority = run.priority, target = run.target, key = run.key,
      permits = run.permits, whenBusy = run.whenBusy, state = run.state,
      isChecked = redis.call('SISMEMBER', key('ticket-checked'), number) == 1 }
  else redis.call('ZREM', key('ticket-wanted'), number) end
end
local gone = redis.call('HGETALL', key('ticket-unwanted'))
for at = 1, #gone, 2 do
  local shard, attempt = string.match(gone[at + 1], '^(%d+) (%d+)$')
  unwanted[#unwanted + 1] = { shard = tonumber(shard), run = gone[at], attempt = tonumber(attempt) }
end
local reasons = redis.call('HGETALL', key('ticket-skipped'))
for at = 1, #reasons, 2 do
  local run, shard = string.match(reasons[at], '^(%d+)t(%d+)$')
  skipped[#skipped + 1] = { ticket = reasons[at], run = run, shard = tonumber(shard), reason = reasons[at + 1] }
end
return reply({ wanted = wanted, unwanted = unwanted, skipped = skipped })
