-- connection/look-at-server.lua: what a server says of itself, and its own time with microseconds.
local time = redis.call('TIME')
return reply({ info = redis.call('INFO'), now = now, serverTime = time[1] .. '.' .. string.format('%06d', time[2]) })
