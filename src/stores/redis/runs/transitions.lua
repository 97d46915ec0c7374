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
-- Each step leaves the queues and lines of the state before and enters those of the next. What it frees is noted;
-- locks/pass-on.lua gives it to the next before the script ends.
whenUsed(transitions, function()
  local MAX_TAKEOVERS = 3
  local LOST_MESSAGE = 'its instance stopped beating: killed, frozen, or its event loop was blocked. That happened %s times, ' ..
    'last on instance %s: see docs/cpu-bound-jobs.md'

  -- Leaves every queue and line that the run's state put it in.
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

  -- Waits for its stamp, for other runs of its schedule, or for its key.
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

  -- Claims find it from now on, or once its time has come. One without its stamp waits for that first.
  function transitions.makeReady(run)
    if run.unstamped then return transitions.makeWait(run, 'stamp') end
    local isNew, waited = not run.state, run.state == 'waiting'
    withdraw(run)
    run.state = 'ready'
    runs.change(run)
    if run.keyShard then tickets.request(run) else queues.add(run) end
    if run.schedule then
      -- A run that is not due yet blocks no other, except a tick: only one is recorded ahead where ticks may not overlap.
      if run.readyAt <= now or run.origin == 'tick' or run.attempt > 0 or waited then overlap.engage(run, isNew)
      else overlap.delay(run) end
    end
    local name = keyLine.of(run)
    if name then keyLine.addReady(name, run) end
    wake('runs')
  end

  -- The caller has given it its key's permit, if it has a key here, with the same token.
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

  -- The runs that the script has skipped, as skipped-run.ts reads them.
  transitions.skipped = {}
  local function noteSkip(run, reason)
    transitions.skipped[#transitions.skipped + 1] = { run = run.number, target = run.target, origin = run.origin,
      schedule = run.schedule, tick = run.tick and int(run.tick), reason = reason }
  end

  local function isKept(run, to) return run.keep == 'all' or (run.keep == 'failures' and to ~= 'succeeded') end

  -- Ends a run. `ending` has a skip's reason, an error or a result: the last two as JSON.
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
    -- What the history does not keep of a skipped tick, the skips do.
    if ending.reason and run.origin == 'tick' then
      transitions.addSkip(run.schedule, run.tick, run.tick, 1, ending.reason)
    elseif ending.reason and permits.isTicket(run.number) then tickets.tellSkipped(run, ending.reason) end
    runs.forget(run)
  end

  -- Removes a run that has not begun, as if it had never been recorded.
  function transitions.unrecord(run)
    tickets.giveUp(run)
    withdraw(run)
    leaveLines(run)
    runs.forget(run)
  end

  -- A running run is ready again, at once or later.
  function transitions.giveBack(run, readyAt)
    freeKey(run)
    run.readyAt = math.floor(readyAt + 0.5)
    transitions.makeReady(run)
  end

  -- A claimed ticket whose run could not start is as it was before the claim, from then on.
  function transitions.unclaim(ticket, readyAt)
    ticket.attempt = ticket.attempt - 1
    leaveLines(ticket)
    transitions.giveBack(ticket, readyAt)
  end

  -- Takes a run from its instance: its token settles no more, and the run is ready for another. `died`: by a failure of the
  -- instance, which counts. Answers 'ready', 'cancelled' or 'lost'.
  function transitions.takeOver(run, died)
    -- What a ticket stands for is counted in the shard of its run.
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

  -- An ended run is ready once more, with all its attempts ahead.
  function transitions.revive(run)
    runs.reopen(run)
    run.finishedAt, run.reason, run.cancelRequested, run.isTakenOver, run.startBy, run.byDeadline = nil, nil, nil, nil, nil, nil
    run.failures, run.takeovers, run.readyAt = 0, 0, now
    runs.setEnding(run)
    dedupe.open(run)
    transitions.makeReady(run)
  end

  -- For a run that must not overlap: running ones are asked to cancel, those between attempts are cancelled, and those that
  -- never began are skipped.
  function transitions.makeWay(schedule)
    for _, run in ipairs(overlap.unfinished(schedule)) do
      if run.state == 'running' then transitions.requestCancel(run)
      elseif run.attempt > 0 then transitions.finish(run, 'cancelled')
      else transitions.finish(run, 'skipped', { reason = 'overlap' }) end
    end
  end
end)
