-- include: runs/key-line
-- cluster/tickets/check-key.lua: returns the run that keeps a key busy. Used before a run of another shard is enqueued
-- on condition that this key is free. It reserves nothing: the key's shard decides again when it receives the run's
-- ticket (tickets.ts).
-- Keys: the key-* sets and the lock of the key.
local winner = keyLine.winner(given.key, given.permits, given.readyAt or now + given.delayMs)
return reply({ winner = winner })
