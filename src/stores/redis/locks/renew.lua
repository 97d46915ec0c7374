-- include: locks/pass-on
-- locks/renew.lua: extends leases, expired ones too while no other holder took them (contract: leases.renew).
--
-- Keys: lock. Answers false for each that is no longer the holder's with that token. Reply lost: asking again extends again.
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
