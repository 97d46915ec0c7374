-- include: locks/pass-on
-- runs/settle.lua: settles attempts (contract: runs.settle).
--
-- A settlement names an attempt by its token. It is accepted if the run is running with this token and still has its
-- key. Each settlement is decided by itself: a stale one does not affect the others.
-- Keys: runs, runs-ended, instance-running; key-* sets and lock of each key; the schedule-* sets.
-- Reply lost: a settlement with the token that settled the run is accepted again, and changes nothing.
local settledHere = {}

local function isCurrent(run, token)
  if run.state ~= 'running' or run.token ~= token then return false end
  -- An expired lease counts as held until another holder has taken it. This shard cannot see whether that happened to a
  -- key in another shard, so the lease of the instance must not have expired.
  if run.keyShard then return instances.expiresAt(run.instance) > now end
  local lease = run.key and permits.leaseOfRun(permits.of(run.key), run.number)
  return not run.key or (lease ~= nil and lease.token == token)
end

local function fail(run) run.failures = run.failures + 1 end

local function apply(run, settlement)
  local kind, json = settlement.kind, settlement.json
  if kind == 'succeeded' then return transitions.finish(run, 'succeeded', { result = json }) end
  if kind == 'cancelled' then return transitions.finish(run, 'cancelled', { error = json }) end
  if kind == 'failed' then
    fail(run)
    return transitions.finish(run, 'failed', { error = json })
  end
  -- This outcome would make the run ready again, but its cancellation was requested.
  if run.cancelRequested then return transitions.finish(run, 'cancelled', { error = json }) end
  if kind == 'retry' then
    fail(run)
    runs.setEnding(run, '', json)
  end
  transitions.giveBack(run, now + settlement.delayMs)
end

local function settle(settlement)
  local number, token = settlement.run, settlement.token
  -- `settledHere` is checked first, because a settled run that the history does not keep has been deleted.
  if settledHere[number] then return settledHere[number] == token end
  local run = runs.load(number)
  if not run then return false end
  if run.settledToken == token then return true end
  if settlement.hasLostKey or not isCurrent(run, token) then return false end
  run.settledToken = token
  settledHere[number] = token
  apply(run, settlement)
  return true
end

local numbersOfRuns, settled = {}, {}
for at, settlement in ipairs(given.settlements) do numbersOfRuns[at] = settlement.run end
runs.loadMany(numbersOfRuns)
for at, settlement in ipairs(given.settlements) do settled[at] = settle(settlement) end
commit()
return reply({ settled = settled })
