-- include: locks/permits
-- include: runs/loaded-runs
-- Writes the messages of a run to its ticket in the key's shard, and of a ticket to its run. tickets.ts explains the
-- protocol, deliver.ts carries the messages.
--
--   ticket-wanted    runs that need a ticket, scored by when they asked for it
--   ticket-sent      runs whose ticket has arrived in the key's shard, scored by when it was sent
--   ticket-checked   of both, runs that are enqueued only if their key is free when their ticket arrives
--   ticket-unwanted  runs that ended without a settlement, with the shard and attempt of the ticket to end
--   ticket-held      in the key's shard: tickets of runs that wait, scored by when they were last sent
--   ticket-skipped   in the key's shard: tickets that were skipped, with the reason, until their runs are skipped, too
local tickets = {}
whenUsed(tickets, function()
  function tickets.request(run)
    redis.call('ZADD', key('ticket-wanted'), now, run.number)
    wake('tickets')
  end

  -- The run leaves the state in which it asked for a ticket, so the request is withdrawn.
  function tickets.forgetRequest(run)
    redis.call('ZREM', key('ticket-wanted'), run.number)
    redis.call('ZREM', key('ticket-sent'), run.number)
  end

  -- For a run that ends before its next attempt starts: asks the key's shard to end the run's ticket.
  function tickets.giveUp(run)
    if not run.keyShard or run.state == 'running' then return end
    if redis.call('ZSCORE', key('ticket-sent'), run.number) or redis.call('ZSCORE', key('ticket-wanted'), run.number) then
      redis.call('HSET', key('ticket-unwanted'), run.number, run.keyShard .. ' ' .. run.attempt)
      wake('tickets')
    end
    redis.call('SREM', key('ticket-checked'), run.number)
  end

  -- For a run that ends while it is running, but not by a settlement: asks the key's shard to end the run's ticket.
  function tickets.dropEnded(run)
    if not run.keyShard or run.state ~= 'running' then return end
    redis.call('HSET', key('ticket-unwanted'), run.number, run.keyShard .. ' ' .. run.attempt)
    wake('tickets')
  end

  function tickets.tellSkipped(ticket, reason)
    redis.call('HSET', key('ticket-skipped'), ticket.number, reason)
    wake('tickets')
  end

  -- Whether a lease is held by a ticket whose run may not be running, because it has not started yet or may have ended.
  -- The key may then be free.
  function tickets.isUnsure(lease)
    local ticket = lease.run and permits.isTicket(lease.run) and runs.load(lease.run)
    return ticket and ticket.state == 'running' and ticket.unconfirmed or false
  end

  function tickets.mayBeFree(lock)
    for _, lease in ipairs(lock.holders) do
      if permits.expiresAt(lease) > now and tickets.isUnsure(lease) then return true end
    end
    return false
  end
end)
