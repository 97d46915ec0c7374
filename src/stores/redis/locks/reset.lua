-- include: locks/pass-on
-- locks/reset.lua: takes a lock from all its holders, by hand (contract: leases.reset). A run that held it is fenced
-- and taken over. Keys: lock, and those of the runs. Reply lost: a repetition takes the lock from its new holder.
local lock = permits.of(given.name)
local holders = {}
for at, lease in ipairs(lock.holders) do holders[at] = lease end
for _, lease in ipairs(holders) do permits.revoke(lock, lease, false) end
if #holders > 0 then
  wake('leases')
  wake('attempts')
end
commit()
return reply({ count = #holders })
