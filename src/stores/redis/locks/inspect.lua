-- include: locks/permits
-- locks/inspect.lua: returns the unexpired leases of some names (contract: leases.inspect). Keys: lock. It only reads.
local leases = {}
for _, name in ipairs(given.names) do
  for _, lease in ipairs(permits.of(name).holders) do
    if permits.expiresAt(lease) > now then leases[#leases + 1] = { name = name, lease = permits.tell(lease) } end
  end
end
return reply({ leases = leases })
