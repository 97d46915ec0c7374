-- include: locks/pass-on
-- runs/enqueue.lua: makes runs, in order (contract: runs.enqueue). Each run is also checked against those before it in the
-- same call.
--
-- Keys: runs, runs-all and the queues; dedupe; schedule-backfills and the schedule-* sets; the key-* sets.
-- Reply lost: a repetition with a dedupe key returns 'duplicate'; without one it makes another run.
numbers.startFrom(given.startFrom)

local function overlapWinner(schedule, policy)
  if policy == 'queue-one' then return overlap.firstWaiting(schedule) end
  if policy == 'skip' then return runs.older(overlap.firstEngaged(schedule), overlap.firstWaiting(schedule)) end
end

-- Returns why a run is refused, and the run that is in its way.
local function refusal(new, run)
  local same = run.dedupe and dedupe.holder(run.target, run.dedupe)
  if same then return 'duplicate', same end
  if run.backfill then
    local known = redis.call('HGET', key('schedule-backfills', run.schedule), int(run.tick) .. '/' .. run.backfill)
    if known then return 'duplicate', known end
  end
  local name = keyLine.of(run)
  local winner = new.checkKey and name and keyLine.winner(name, run.permits, run.readyAt)
  if not winner and run.schedule then winner = overlapWinner(run.schedule, new.overlap) end
  if winner then return 'busy', winner end
end

-- Applies the overlap policy to the other runs of the schedule. Returns whether the new run has to wait for them.
local function meetOverlap(schedule, policy)
  if not schedule or policy == 'allow' then return false end
  if policy == 'cancel-running' then transitions.makeWay(schedule) end
  return (overlap.firstEngaged(schedule) or overlap.firstWaiting(schedule)) ~= nil
end

local function enqueue(new)
  local run = new.run
  run.readyAt = math.floor((new.readyAt or now + new.delayMs) + 0.5)
  if new.tickIsNow then run.tick = now end
  local outcome, winner = refusal(new, run)
  if outcome then return { outcome = outcome, run = winner } end
  local waits = meetOverlap(run.schedule, new.overlap)
  runs.add(run, new.body)
  if run.backfill then
    redis.call('HSET', key('schedule-backfills', run.schedule), int(run.tick) .. '/' .. run.backfill, run.number)
  end
  dedupe.open(run)
  if run.keyShard and new.checkKey then redis.call('SADD', key('ticket-checked'), run.number) end
  if waits then transitions.makeWait(run, 'overlap') else transitions.makeReady(run) end
  return { outcome = 'enqueued', run = run.number }
end

local results = {}
for at, new in ipairs(given.runs) do results[at] = enqueue(new) end
commit()
return reply({ results = results })
