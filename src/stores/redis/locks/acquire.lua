-- include: locks/pass-on
-- locks/acquire.lua: acquires permits of locks (contract: leases.acquire).
--
-- The protocol of all locks, of users' locks and of runs' keys alike. One rule decides: a lease belongs to its holder until it
-- has expired AND another holder has taken it.
--
--            acquire                    release, or taken over
--   free ───────────────► held ◄──────────────────────────────┐
--    ▲                     │ │                                 │
--    │ release without     │ └─ it expires ───► expired ───────┤ renew: held by the same holder again
--    │ a waiter            │                      │            │
--    └─────────────────────┤                      └─ acquire ──┘ by another: the old token is stale
--                          │
--                          └─ release with a waiter ─► handed off to the oldest waiter (pass-on.lua)
--
-- A caller that gets no permit waits for one. It has a place in lock-waiters for `waitMs`, and keeps the place by
-- asking again. A lease that is handed off expires when the waiter's place would have. When the waiter asks again, the
-- lease is extended to its full time.
--
-- - Two callers ask at once: scripts run one after the other, so the first takes the permit and the second finds it
--   busy.
-- - A holder stalls past its expiry and comes back: if no other holder has taken the lease, it renews and continues.
--   Otherwise its entry is gone, and renew, release and (for a run) settle are refused.
-- - A holder dies: nothing has to notice. The next caller takes its permit, with a higher token.
-- - A waiter dies: its place expires, and with it a lease that was handed to it meanwhile.
-- - The reply is lost: when the same holder asks again, it finds that it has the lease, or still has its place.
-- - A failover loses the last writes: another holder may get the lease while the first still trusts it, until its next
--   renewal fails. The new token is higher all the same, because tokens also follow the clock and the tokens that
--   clients have seen.
--
-- Keys: lock (text, see lease-codec.ts), lock-names, lock-waiters, lock-waiter-terms, lock-blocked.

-- A place that has at least this part of its time left is not written again, because waiters ask often.
local FRESH_PLACE = 2 / 3

-- Extends the lease that the holder already has. A run's lease is left as it is: it lasts as long as its instance's
-- lease.
local function extendOwn(lock, asked)
  local own = permits.leaseOf(lock, asked.holder)
  if not own or own.released then return nil end
  if not own.run then
    own.expiresAt = now + asked.ttlMs
    permits.change(lock)
  end
  return own
end

local function take(lock, asked)
  local own = extendOwn(lock, asked)
  if not own and lock.waiters then
    passOn.toLocks(lock)
    own = extendOwn(lock, asked)
  end
  if own then return own end
  if permits.isBusy(lock, asked.permits) then return nil end
  local released = permits.leaseOf(lock, asked.holder)
  if released then permits.remove(lock, released) end
  return permits.grant(lock, asked.permits, { holder = asked.holder, instance = asked.instance,
    token = permits.nextToken(lock.lastToken, given.floor), acquiredAt = now, expiresAt = now + asked.ttlMs })
end

local function keepPlace(lock, asked)
  if asked.waitMs <= 0 then return end
  local terms = redis.call('HGET', key('lock-waiter-terms', lock.name), asked.holder)
  terms = terms and cjson.decode(terms)
  if terms and terms.ttlMs == asked.ttlMs and terms.permits == asked.permits
    and terms.placeUntil - now >= asked.waitMs * FRESH_PLACE then return end
  if not lock.waiters then
    lock.waiters = true
    permits.change(lock)
    redis.call('SADD', key('lock-blocked'), lock.name)
  end
  redis.call('ZADD', key('lock-waiters', lock.name), 'NX', int(numbers.next()), asked.holder)
  redis.call('HSET', key('lock-waiter-terms', lock.name), asked.holder, cjson.encode({ ttlMs = asked.ttlMs,
    permits = asked.permits, instance = asked.instance, floor = int(given.floor), placeUntil = now + asked.waitMs }))
end

local function soonestEnd(lock)
  local soonest
  for _, lease in ipairs(lock.holders) do
    local expiresAt = permits.expiresAt(lease)
    if expiresAt > now then soonest = math.min(soonest or expiresAt, expiresAt) end
  end
  return soonest or now
end

local results = {}
for at, asked in ipairs(given.requests) do
  local lock = permits.of(asked.name)
  local lease = take(lock, asked)
  if lease then
    if lock.waiters then passOn.dropWaiter(lock, asked.holder) end
    results[at] = { lease = permits.tell(lease) }
  else
    keepPlace(lock, asked)
    results[at] = { busyUntil = soonestEnd(lock) }
  end
  permits.mayBeFree(asked.name)
end
commit()
return reply({ now = now, results = results })
