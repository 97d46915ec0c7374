-- include: locks/pass-on
-- runs/retry.lua: makes an ended run ready again, by hand (contract: runs.retry). It refuses runs that have succeeded
-- or are unfinished, and runs whose dedupe key another run has. Keys: runs, runs-ended, dedupe, queues and key-* sets.
-- Reply lost: a repetition returns 'refused', because the run is ready.
local RETRIED = { failed = true, cancelled = true, skipped = true }

local run = runs.load(given.number)
if not run then return reply({ result = 'missing' }) end
local same = run.dedupe and dedupe.holder(run.target, run.dedupe)
if not RETRIED[run.state] or (same and same ~= run.number) then return reply({ result = 'refused' }) end
transitions.revive(run)
commit()
return reply({ result = 'ready' })
