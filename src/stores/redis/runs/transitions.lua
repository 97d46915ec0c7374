-- include: cluster/tickets/requests
-- include: locks/permits
-- include: runs/dedupe
-- include: runs/key-line
-- include: runs/loaded-runs
-- include: runs/overlap
-- include: runs/queues
-- include: schema/sets
-- The only place that changes a run's state.
--
--   (new) ──► ready ──start──► running ──finish──► succeeded, failed, cancelled
--     │        ▲  │               │
--     ▼        │  ▼ makeWait      │ giveBack, takeOver
--   waiting ───┘◄─────────────────┘             ready, waiting ──finish──► skipped, cancelled
--
-- Each step removes the run from the queues and sets of its old state, and adds it to those of its new state. What it frees is
-- noted, and passed on by locks/pass-on.lua before the script ends.
whenUsed(transitions, function()
  local MAX_TAKEOVERS = 3
  local LOST_MESSAGE = 'its instance stopped beating: killed, frozen, or its event loop was blocked. That happened %s times, ' ..
    'last on instance %s: see docs/cpu-bound-jobs.md'

  -- Removes a run from every queue and set that its state put it in.
  local function withdraw(run)
    local name = keyLine.of(run)
    if run.keyShard and run.state ~= 'running' then tickets.forgetRequest(run) end
    if run.state == 'running' then sets.remove(key('instance-running', run.instance), run.number)
    elseif run.state == 'ready' then
      if not run.keyShard then queues.remove(run) end
      if name then keyLine.removeReady(name, run) end
    elseif run.state == 'waiting' then
      if name then keyLine.removeWaiting(name, run) end
      if run.waitsFor == 'stamp' then redis.call('ZREM', key('runs-unstamped'), run.number)
      elseif run.waitsFor == 'overlap' then overlap.stopWaiting(run) end
    end
    run.waitsFor, run.skipsIfBusy, run.unconfirmed, run.isEnding = nil, nil, nil, nil
  end

  -- Makes a run wait for its stamp, for other runs of its schedule, or for its key (`why`).
  function transitions.makeWait(run, why, skipsIfBusy)
    withdraw(run)
    run.state, run.waitsFor, run.skipsIfBusy = 'waiting', why, skipsIfBusy
    runs.change(run)
    if run.schedule then
      if why == 'overlap' then overlap.wait(run) else overlap.engage(run) end
    end
    local name = keyLine.of(run)
    if name then keyLine.addWaiting(name, run) end
    if run.keyShard and why == 'overlap' then tickets.request(run) end
    if why == 'stamp' then redis.call('ZADD', key('runs-unstamped'), run.number, run.number) end
  end

  -- Makes a run ready: claims find it now, or as soon as it is due. A run that has no stamp yet waits for that first.
  function transitions.makeReady(run)
    if run.unstamped then return transitions.makeWait(run, 'stamp') end
    local isNew, waited = not run.state, run.state == 'waiting'
    withdraw(run)
    run.state = 'ready'
    runs.change(run)
    if run.keyShard then tickets.request(run) else queues.add(run) end
    if run.schedule then
      -- A run that is not due yet blocks no other run of its schedule. A tick does, because at most one tick is
      -- recorded ahead if ticks may not overlap.
      if run.readyAt <= now or run.origin == 'tick' or run.attempt > 0 or waited then overlap.engage(run, isNew)
      else overlap.delay(run) end
    end
    local name = keyLine.of(run)
    if name then keyLine.addReady(name, run) end
    wake('runs')
  end

  -- Starts an attempt. If the key of the run is in this shard, the caller grants a permit of the key with the same
  -- token.
  function transitions.start(run, token, instance, claim)
    withdraw(run)
    run.state, run.token, run.startedAt, run.instance, run.claim = 'running', int(token), now, instance, claim
    run.attempt = run.attempt + 1
    if run.isTakenOver then run.takeovers, run.isTakenOver = run.takeovers + 1, nil end
    runs.change(run)
    sets.put(key('instance-running', instance), run.number, 0)
  end

  local function freeKey(run)
    local name = keyLine.of(run)
    local lock = name and permits.of(name)
    local lease = lock and permits.leaseOfRun(lock, run.number)
    if not lease then return end
    permits.remove(lock, lease)
    wake('leases')
  end

  local function leaveLines(run)
    if run.schedule then overlap.leave(run) end
    local name = keyLine.of(run)
    if name then keyLine.leave(name, run) end
  end

  function transitions.addSkip(schedule, from, to, count, reason)
    local range = numbers.nextText() .. ' ' .. int(from) .. ' ' .. int(to) .. ' ' .. int(count) .. ' ' .. reason
    redis.call('ZADD', key('schedule-skips', schedule), to, range)
    redis.call('ZADD', key('skips'), now, cjson.encode({ schedule, range }))
  end

  -- The runs that this script has skipped, as skipped-run.ts reads them.
  transitions.skipped = {}
  local function noteSkip(run, reason)
    transitions.skipped[#transitions.skipped + 1] = { run = run.number, target = run.target, origin = run.origin,
      schedule = run.schedule, tick = run.tick and int(run.tick), reason = reason }
  end

  local function isKept(run, to) return run.keep == 'all' or (run.keep == 'failures' and to ~= 'succeeded') end

  -- Ends a run. `ending` has the reason of a skip, or the error or the result as JSON.
  function transitions.finish(run, to, ending)
    ending = ending or {}
    local wasRunning = run.state == 'running'
    tickets.giveUp(run)
    withdraw(run)
    if to == 'skipped' then noteSkip(run, ending.reason) end
    run.state = to
    runs.change(run)
    if wasRunning then freeKey(run) end
    leaveLines(run)
    dedupe.close(run)
    wake('settled')
    if isKept(run, to) then
      run.finishedAt, run.reason = now, ending.reason
      runs.setEnding(run, ending.result, ending.error)
      runs.keepEnded(run)
      return
    end
    -- The history does not keep this run. If a tick was skipped, its skip is recorded instead. If a ticket was skipped,
    -- the shard of its run gets a message.
    if ending.reason and run.origin == 'tick' then
      transitions.addSkip(run.schedule, run.tick, run.tick, 1, ending.reason)
    elseif ending.reason and permits.isTicket(run.number) then tickets.tellSkipped(run, ending.reason) end
    runs.forget(run)
  end

  -- Removes a run that has not started, as if it had never been recorded.
  function transitions.unrecord(run)
    tickets.giveUp(run)
    withdraw(run)
    leaveLines(run)
    runs.forget(run)
  end

  -- Makes a running run ready again, at once or later.
  function transitions.giveBack(run, readyAt)
    freeKey(run)
    run.readyAt = math.floor(readyAt + 0.5)
    transitions.makeReady(run)
  end

  -- Undoes the claim of a ticket whose run could not start. The ticket is ready again at `readyAt`.
  function transitions.unclaim(ticket, readyAt)
    ticket.attempt = ticket.attempt - 1
    leaveLines(ticket)
    transitions.giveBack(ticket, readyAt)
  end

  -- Takes a run from its instance: its token becomes stale, and the run is ready for another instance. `died`: the
  -- instance has failed, so the takeover counts against MAX_TAKEOVERS. Returns 'ready', 'cancelled' or 'lost'.
  function transitions.takeOver(run, died)
    -- Takeovers of a ticket's run are counted in the shard of the run.
    died = died and not permits.isTicket(run.number)
    if run.cancelRequested or (died and run.takeovers >= MAX_TAKEOVERS) then tickets.dropEnded(run) end
    if run.cancelRequested then
      transitions.finish(run, 'cancelled')
      return 'cancelled'
    end
    if died and run.takeovers >= MAX_TAKEOVERS then
      local message = string.format(LOST_MESSAGE, run.takeovers + 1, run.instance)
      transitions.finish(run, 'failed', { error = cjson.encode({ code = 'LOST', message = message }) })
      return 'lost'
    end
    transitions.giveBack(run, now)
    run.isTakenOver = died or nil
    return 'ready'
  end

  function transitions.requestCancel(run)
    run.cancelRequested = true
    runs.change(run)
    wake('attempts')
  end

  -- Makes an ended run ready again, with all its attempts left.
  function transitions.revive(run)
    runs.reopen(run)
    run.finishedAt, run.reason, run.cancelRequested, run.isTakenOver, run.startBy, run.byDeadline = nil, nil, nil, nil, nil, nil
    run.failures, run.takeovers, run.readyAt = 0, 0, now
    runs.setEnding(run)
    dedupe.open(run)
    transitions.makeReady(run)
  end

  -- Makes way for a run that must not overlap with others. Runs that are running are asked to cancel, those between
  -- attempts are cancelled, and those that have never started are skipped.
  function transitions.makeWay(schedule)
    for _, run in ipairs(overlap.unfinished(schedule)) do
      if run.state == 'running' then transitions.requestCancel(run)
      elseif run.attempt > 0 then transitions.finish(run, 'cancelled')
      else transitions.finish(run, 'skipped', { reason = 'overlap' }) end
    end
  end
end)
