-- connection/look-at-server.lua: returns the server's INFO, and its time in seconds with six decimals.
local time = redis.call('TIME')
return reply({ info = redis.call('INFO'), now = now, serverTime = time[1] .. '.' .. string.format('%06d', time[2]) })
