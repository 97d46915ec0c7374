-- include: locks/pass-on
-- cluster/tickets/start-runs.lua: starts runs in their own shard, after their tickets were claimed in the keys' shards.
-- Each run gets its ticket's token (tickets.ts). For a run that cannot start yet, the script returns in how many
-- milliseconds its ticket may be claimed again. For a run that needs no start it returns neither, and the caller ends
-- its ticket. Reply lost: a repetition with the same token returns the same.
-- Keys: runs, instance, instance-running, schedule-engaged, schedule-later, ticket-wanted, ticket-sent.

-- BEHIND_MS: how long a ticket waits if the ticket of an older run must be claimed first.
-- LONGEST_MS: the longest wait for a clock. It has a limit because a failover may set the clock of the key's shard
-- back.
local BEHIND_MS, LONGEST_MS = 100, 1000
-- With how many older runs of its schedule a run is compared.
local MOST_OLDER = 100

-- Returns an older run of the same schedule that must have the key first. A failover may have lost that run's ticket,
-- so the key's shard cannot check the order. Runs with several permits may start in any order.
local function olderRun(run)
  if not run.schedule or run.permits > 1 or run.attempt > 0 then return nil end
  overlap.ripen(run.schedule)
  local older = redis.call('ZRANGEBYSCORE', key('schedule-engaged', run.schedule), '-inf', '(' .. run.number,
    'LIMIT', 0, MOST_OLDER)
  for _, other in ipairs(runs.loadMany(older)) do
    local isNext = other.state == 'ready' and other.attempt == 0 and other.readyAt <= run.readyAt
    if isNext and other.key == run.key then return other end
  end
end

-- Starts a run. Returns whether it has started and, if not, in how many milliseconds its ticket may be claimed again.
local function start(run, token)
  if not run or not run.keyShard or (run.state ~= 'ready' and run.state ~= 'running') then return false end
  if run.state == 'running' and run.token == token and run.instance == given.instance then return true end
  local behindUs = (tonumber(run.token) or 0) - tonumber(token)
  if run.state == 'running' and behindUs >= 0 then return false end
  if not instances.isAlive(given.instance) then return false, 0 end
  -- The ticket's token is not above the run's last one. Tokens follow the clock: after this time the key's shard issues
  -- a higher one.
  if behindUs >= 0 then return false, math.min(math.floor(behindUs / 1000) + 1, LONGEST_MS) end
  if run.state == 'running' then
    transitions.takeOver(run, true)
    if run.state ~= 'ready' then return false end
  end
  -- The ticket was due by the clock of the key's shard, but the run is not due yet by the clock of this shard.
  if run.readyAt > now then return false, math.min(run.readyAt - now, LONGEST_MS) end
  local older = olderRun(run)
  if older then
    tickets.request(older)
    return false, BEHIND_MS
  end
  transitions.start(run, tonumber(token), given.instance, given.claim)
  return true
end

local answers, started = {}, {}
for at, each in ipairs(given.runs) do
  local run = runs.load(each.run)
  local hasStarted, againInMs = start(run, each.token)
  started[at] = hasStarted and run
  answers[at] = { againInMs = againInMs }
end
commit()
for at, run in ipairs(started) do answers[at].run = run and runs.tell(run) or nil end
return reply({ runs = answers })
