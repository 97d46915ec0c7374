-- include: locks/pass-on
-- cluster/tickets/start-runs.lua: starts runs whose tickets were claimed in their keys' shards, with the tickets' tokens
-- (tickets.ts). Answers false for each that cannot start. Reply lost: a repetition with the same token answers the same.
-- Keys: runs, instance, instance-running, ticket-wanted, ticket-sent.
local function start(run, token)
  if not instances.isAlive(given.instance) or not run or not run.keyShard then return false end
  if run.state ~= 'ready' and run.state ~= 'running' then return false end
  if run.state == 'running' and run.token == token and run.instance == given.instance then return true end
  if (tonumber(run.token) or 0) >= tonumber(token) then return false end
  if run.state == 'running' then
    transitions.takeOver(run, true)
    if run.state ~= 'ready' then return false end
  end
  if run.readyAt > now then return false end
  transitions.start(run, tonumber(token), given.instance, given.claim)
  return true
end

local started = {}
for at, each in ipairs(given.runs) do
  local run = runs.load(each.run)
  started[at] = start(run, each.token) and run
  -- One that is ready after all needs another ticket.
  local needsAnother = run and not started[at] and run.state == 'ready' and run.keyShard
  if needsAnother and redis.call('ZREM', key('ticket-sent'), run.number) == 1 then
    redis.call('ZADD', key('ticket-wanted'), now, run.number)
  end
end
commit()
local told = {}
for at, run in ipairs(started) do told[at] = run and runs.tell(run) end
return reply({ runs = told })
