-- include: locks/permits
-- locks/inspect.lua: the leases of some names now (contract: leases.inspect). Keys: lock. It only looks.
local leases = {}
for _, name in ipairs(given.names) do
  for _, lease in ipairs(permits.of(name).holders) do
    if permits.expiresAt(lease) > now then leases[#leases + 1] = { name = name, lease = permits.tell(lease) } end
  end
end
return reply({ leases = leases })
