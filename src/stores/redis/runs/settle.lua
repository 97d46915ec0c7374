-- include: locks/pass-on
-- runs/settle.lua: ends attempts (contract: runs.settle).
--
-- An attempt is ended by its token, while its run is running and it still has its key. Each run is ended alone: one that
-- is stale leaves the others as they are. Keys: runs, runs-ended, instance-running; lines and lock of each key; the sets of
-- each schedule. Reply lost: a run whose settled token is the given one answers 'settled' again.
local settledHere = {}

local function isCurrent(run, token)
  if run.state ~= 'running' or run.token ~= token then return false end
  -- A lease that ran out counts as held until another holder took it, which cannot be seen of one in another shard.
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
  -- It was to be tried again.
  if run.cancelRequested then return transitions.finish(run, 'cancelled', { error = json }) end
  if kind == 'retry' then
    fail(run)
    runs.setEnding(run, '', json)
  end
  transitions.giveBack(run, now + settlement.delayMs)
end

local function settle(settlement)
  local number, token = settlement.run, settlement.token
  -- The history may keep nothing of it.
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
