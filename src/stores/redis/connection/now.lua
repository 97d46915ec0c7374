-- connection/now.lua: the store's time (contract: now).
return reply({ now = now })
