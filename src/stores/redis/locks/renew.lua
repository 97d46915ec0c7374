-- include: locks/pass-on
-- locks/renew.lua: extends leases, also expired ones that no other holder has taken (contract: leases.renew).
--
-- Keys: lock. Returns false for each lease that the holder no longer has with the given token. Reply lost: a repetition
-- extends it again.
local leases = {}
for at, asked in ipairs(given.requests) do
  local lock = permits.of(asked.name)
  local lease = permits.leaseOf(lock, asked.holder)
  if lease and lease.token == asked.token and not lease.released then
    if not lease.run then
      lease.expiresAt = now + asked.ttlMs
      permits.change(lock)
    end
    leases[at] = permits.tell(lease)
  else leases[at] = false end
end
commit()
return reply({ leases = leases })
