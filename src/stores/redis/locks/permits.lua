-- include: instances/instance-text
-- include: runs/loaded-runs
-- Permits of a name: who holds one, until when, and how a new holder gets one. Users' locks and runs' keys are the same
-- thing. The layout of a lock's text is in locks/lease-codec.ts. In a script, the lock also has its `name`, and
-- `isStored` if its text exists.
--
-- An expired lease no longer counts, but it stays until another holder takes its place, and can be renewed until then.
-- If the expired holder was a run's attempt, the script that takes the place also fences that run. Scripts compare
-- leases with the clock. The Redis expiry of the whole text, a day after its last lease, only removes unused texts.
local permits = {}
-- Filled in by runs/transitions.lua. Needed here because revoking the permit of a run ends its attempt.
local transitions = {}
whenUsed(permits, function()
  local DAY_MS = 86400000
  local known, changed, isChanged, freed, isFreed = {}, {}, {}, {}, {}

  function permits.of(name)
    local lock = known[name]
    if not lock then
      local text = redis.call('GET', key('lock', name))
      lock = text and cjson.decode(text) or { lastToken = '0', holders = {} }
      lock.name, lock.isStored = name, text and true
      known[name] = lock
    end
    return lock
  end

  function permits.change(lock)
    if isChanged[lock] then return end
    isChanged[lock] = true
    changed[#changed + 1] = lock
  end

  -- Notes that a permit of this name may have become free. pass-on.lua passes it on before the script ends.
  function permits.mayBeFree(name)
    if isFreed[name] then return end
    isFreed[name] = true
    freed[#freed + 1] = name
  end

  -- Returns the noted locks that callers or runs wait for, and clears the notes.
  function permits.takeFreed()
    local waitedFor = {}
    for _, name in ipairs(freed) do
      local lock = permits.of(name)
      if lock.waiters or lock.runs then waitedFor[#waitedFor + 1] = lock end
    end
    freed, isFreed = {}, {}
    return waitedFor
  end

  -- Whether a number is a ticket's. A ticket represents a run of another shard: its number is the run's 16 digits, a
  -- `t` and that shard.
  function permits.isTicket(number) return #number > 16 end

  function permits.expiresAt(lease)
    if not lease.run then return lease.expiresAt end
    if permits.isTicket(lease.run) then return instances.ticketsExpireAt(lease.instance) end
    return instances.expiresAt(lease.instance)
  end

  -- A lease as scripts return it. The lease of a run's attempt expires with its instance's lease.
  function permits.tell(lease)
    if not lease.run then return lease end
    return { holder = lease.holder, token = lease.token, acquiredAt = lease.acquiredAt, expiresAt = permits.expiresAt(lease),
      instance = lease.instance, run = lease.run }
  end

  function permits.countLive(lock)
    local live = 0
    for _, lease in ipairs(lock.holders) do
      if permits.expiresAt(lease) > now then live = live + 1 end
    end
    return live
  end

  function permits.isBusy(lock, limit) return #lock.holders >= limit and permits.countLive(lock) >= limit end

  function permits.leaseOf(lock, holder)
    for _, lease in ipairs(lock.holders) do
      if lease.holder == holder then return lease end
    end
  end

  function permits.leaseOfRun(lock, number)
    for _, lease in ipairs(lock.holders) do
      if lease.run == number then return lease end
    end
  end

  function permits.remove(lock, lease)
    for at, other in ipairs(lock.holders) do
      if other == lease then
        table.remove(lock.holders, at)
        break
      end
    end
    permits.change(lock)
    permits.mayBeFree(lock.name)
  end

  -- Takes a permit from its holder. `died`: its lease has expired.
  function permits.revoke(lock, lease, died)
    local run = lease.run and runs.load(lease.run)
    if run then transitions.takeOver(run, died) else permits.remove(lock, lease) end
  end

  -- Revokes expired leases until there is room for one more, beginning with the one that expired first.
  function permits.makeRoom(lock, limit)
    while #lock.holders >= limit do
      local first = lock.holders[1]
      for _, lease in ipairs(lock.holders) do
        if permits.expiresAt(lease) < permits.expiresAt(first) then first = lease end
      end
      if permits.expiresAt(first) > now then return end
      permits.revoke(lock, first, true)
    end
  end

  -- Tokens only increase, even after a failover: above the last token of the name, and not below the clock or what the
  -- client has seen.
  function permits.nextToken(last, floor) return int(math.max(last + 1, clock.nowUs, floor)) end

  -- The caller must have checked that the lock is not busy.
  function permits.grant(lock, limit, lease)
    permits.makeRoom(lock, limit)
    lock.lastToken = lease.token
    lock.holders[#lock.holders + 1] = lease
    permits.change(lock)
    return lease
  end

  local function write(lock)
    return cjson.encode({ lastToken = lock.lastToken, waiters = lock.waiters, runs = lock.runs, holders = lock.holders })
  end

  local function save(lock)
    local lastEnd, stays = now, lock.waiters or lock.runs
    for _, lease in ipairs(lock.holders) do
      if lease.run then stays = true else lastEnd = math.max(lastEnd, lease.expiresAt) end
    end
    if not lock.isStored then redis.call('ZADD', key('lock-names'), 0, lock.name) end
    local name, text = key('lock', lock.name), write(lock)
    if stays then redis.call('SET', name, text)
    else redis.call('SET', name, text, 'PX', int(DAY_MS + lastEnd - now)) end
  end

  function permits.save()
    for _, lock in ipairs(changed) do save(lock) end
  end
end)
