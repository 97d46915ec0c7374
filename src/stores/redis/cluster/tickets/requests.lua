-- include: locks/permits
-- include: runs/loaded-runs
-- The messages of a run to its ticket in the key's shard, and of the ticket to its run. tickets.ts explains the protocol,
-- deliver.ts carries the messages.
--
--   ticket-wanted    runs that need a ticket, by since when
--   ticket-sent      runs whose ticket is there, by when it was sent
--   ticket-checked   of these, runs that are enqueued only if their key is free when they get their ticket
--   ticket-unwanted  runs that ended without a settlement, with the shard and attempt of the ticket to end
--   ticket-held      in the key's shard: tickets of runs that wait, by when they were last sent
--   ticket-skipped   in the key's shard: tickets that were skipped, with the reason, until their runs have it
local tickets = {}
whenUsed(tickets, function()
  function tickets.request(run)
    redis.call('ZADD', key('ticket-wanted'), now, run.number)
    wake('tickets')
  end

  -- The run no longer needs the ticket that it asked for.
  function tickets.forgetRequest(run)
    redis.call('ZREM', key('ticket-wanted'), run.number)
    redis.call('ZREM', key('ticket-sent'), run.number)
  end

  -- The run ends before it has begun, and so must its ticket.
  function tickets.giveUp(run)
    if not run.keyShard or run.state == 'running' then return end
    if redis.call('ZSCORE', key('ticket-sent'), run.number) or redis.call('ZSCORE', key('ticket-wanted'), run.number) then
      redis.call('HSET', key('ticket-unwanted'), run.number, run.keyShard .. ' ' .. run.attempt)
      wake('tickets')
    end
    redis.call('SREM', key('ticket-checked'), run.number)
  end

  -- The run ends while it is running, and no settlement will end its ticket.
  function tickets.dropEnded(run)
    if not run.keyShard or run.state ~= 'running' then return end
    redis.call('HSET', key('ticket-unwanted'), run.number, run.keyShard .. ' ' .. run.attempt)
    wake('tickets')
  end

  function tickets.tellSkipped(ticket, reason)
    redis.call('HSET', key('ticket-skipped'), ticket.number, reason)
    wake('tickets')
  end

  -- A claimed ticket whose run is not known to run: it has not started yet, or may have ended. The key may be free.
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
