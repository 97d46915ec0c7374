-- include: runs/key-winner
-- runs/check-key.lua: who has a key that a run is enqueued for on condition that it is free, asked from the run's shard. It
-- reserves nothing: the key's shard decides when the run gets its ticket. Keys: the lines and the lock of the key.
local winner = keyWinner(given.key, given.permits, given.readyAt or now + given.delayMs)
return reply({ winner = winner })
