-- include: runs/key-line
-- cluster/tickets/check-key.lua: the run that has a key which another run needs free to be enqueued, asked from that run's shard. It
-- reserves nothing: the key's shard decides when the run gets its ticket. Keys: the lines and the lock of the key.
local winner = keyLine.winner(given.key, given.permits, given.readyAt or now + given.delayMs)
return reply({ winner = winner })
