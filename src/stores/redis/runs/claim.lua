-- include: locks/pass-on
-- runs/claim.lua: starts runs that are ready (contract: runs.claim).
--
-- It reads the queues of all requested targets from the front, in claim order: the highest priority first, then the run
-- that has been ready longest, then the oldest. A run with a key takes a permit of the key in the same step, under the
-- protocol of locks/acquire.lua.
--
-- Crash or lost reply: instance-claims keeps the claim's number until a beat reports that the claim was answered. A
-- repetition with the same number returns the runs that the claim started. A run that the instance does not list in its
-- beat becomes ready again: see instances/beat.lua.
-- Keys: queue, queue-priorities, queue-targets, instance, instance-claims, meta (frozen); key-* sets and lock of each
-- key.

-- One script looks at no more than this many runs that cannot start.
local MOST_LOOKS = 2000

-- How many more runs of each target may start.
local left = {}
for _, target in ipairs(given.targets) do left[target.name] = target.limit end
local all, started, looks = queues.of(given.targets), {}, 0

local function inClaimOrder(one, other)
  if one.priority ~= other.priority then return one.priority > other.priority end
  if one.readyAt ~= other.readyAt then return one.readyAt < other.readyAt end
  return one.number < other.number
end

-- The first runs of every queue, in claim order.
local function candidates()
  local found = queues.first(all, left, given.limit - #started)
  table.sort(found, inClaimOrder)
  local first = {}
  for at = 1, math.min(#found, given.limit - #started) do first[at] = found[at].number end
  runs.loadMany(first)
  return found
end

-- Whether a run may take its key: a permit is free, and no older run that is due must start before it. If not, the run
-- waits or is skipped.
local function mayTakeKey(run, lock)
  passOn.toLocks(lock)
  if permits.isBusy(lock, run.permits) then
    if run.attempt > 0 or run.whenBusy ~= 'skip' then transitions.makeWait(run, 'key')
    elseif tickets.mayBeFree(lock) then transitions.makeWait(run, 'key', true)
    else transitions.finish(run, 'skipped', { reason = 'busy' }) end
    return false
  end
  permits.makeRoom(lock, run.permits)
  keyLine.ripen(lock.name)
  if not keyLine.isBehind(lock.name, run.number) then return true end
  transitions.makeWait(run, 'key')
  return false
end

-- Starts a run. Returns false if it cannot start: then it waits or has ended, and is no longer ready.
local function start(run)
  if run.attempt == 0 and run.startBy and now > run.startBy then
    transitions.finish(run, 'skipped', { reason = run.byDeadline and 'deadline' or 'missed' })
    return false
  end
  local lock = run.key and permits.of(run.key)
  if lock and not mayTakeKey(run, lock) then return false end
  local last = math.max(tonumber(run.token or '0'), tonumber(lock and lock.lastToken or '0'))
  local token = permits.nextToken(last, given.floor)
  transitions.start(run, token, given.instance, given.claim)
  if not lock then return true end
  run.unconfirmed = permits.isTicket(run.number) or nil
  permits.grant(lock, run.permits, { holder = 'run:' .. run.number .. ':' .. run.token, token = token, acquiredAt = now,
    instance = given.instance, run = run.number })
  keyLine.count(lock.name, run.number)
  -- Younger runs of the key waited behind this one. If the key has free permits left, they become ready.
  if run.permits > 1 then passOn.toRuns(lock) end
  return true
end

local function isFull() return #started >= given.limit or looks >= MOST_LOOKS end

-- Starts the runs at the front of the queues. Returns whether the caller must try again, because a run that could not
-- start left room for another, or made another one ready.
local function startSome()
  local more, additions = false, queues.additions
  for _, candidate in ipairs(candidates()) do
    if isFull() then return false end
    if left[candidate.target] > 0 then
      local run = runs.load(candidate.number)
      if not run then
        queues.remove(candidate)
        more = true
      elseif start(run) then
        started[#started + 1] = run
        left[run.target] = left[run.target] - 1
      else
        looks = looks + 1
        more = true
      end
      if queues.additions ~= additions then return true end
    end
  end
  return more
end

local function startedBefore()
  for _, run in ipairs(runs.loadMany(redis.call('ZRANGE', key('instance-running', given.instance), 0, -1))) do
    if run.claim == given.claim then started[#started + 1] = run end
  end
end

if instances.isAlive(given.instance) and not redis.call('HGET', key('meta'), 'frozen') then
  local isRepeated = given.claim <= instances.load(given.instance).claimsSettled
    or redis.call('ZADD', key('instance-claims', given.instance), 'NX', given.claim, given.claim) == 0
  if isRepeated then startedBefore() else repeat local more = startSome() until not more end
end
commit()

local told = {}
for at, run in ipairs(started) do told[at] = runs.tell(run) end
queues.tidy(all)
return reply({ now = now, runs = told, skipped = isUsed(transitions) and transitions.skipped or {},
  nextReadyAt = looks >= MOST_LOOKS and now or queues.nextReadyAt(all) })
