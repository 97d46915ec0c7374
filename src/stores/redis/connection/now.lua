-- connection/now.lua: returns the store's time (contract: now).
return reply({ now = now })
