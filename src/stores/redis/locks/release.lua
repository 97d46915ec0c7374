-- include: locks/pass-on
-- locks/release.lua: releases leases, and gives up places in the waiter queue (contract: leases.release).
--
-- A request only ever removes the holder's own lease, so a repeated or late one finds nothing. A lease that was held
-- for less than its minimum stays until then, marked as released: it can be neither renewed nor acquired. Keys: lock,
-- lock-waiters, lock-waiter-terms.
-- Reply lost: the repetition returns false, as for a lease that another holder has taken.
local results = {}
for at, asked in ipairs(given.requests) do
  local lock = permits.of(asked.name)
  local lease = permits.leaseOf(lock, asked.holder)
  local held = lease ~= nil and not lease.run and not lease.released
  local waited = lock.waiters and passOn.dropWaiter(lock, asked.holder)
  if held and lease.acquiredAt + asked.minHoldMs <= now then permits.remove(lock, lease)
  elseif held then
    lease.released, lease.expiresAt = true, lease.acquiredAt + asked.minHoldMs
    permits.change(lock)
  end
  permits.mayBeFree(asked.name)
  results[at] = held or waited or false
end
commit()
return reply({ results = results })
