-- include: locks/pass-on
-- runs/cancel.lua: cancels a run that is not running, and asks a running one to cancel (contract: runs.cancel).
-- Keys: runs, and the queues and sets that the run is in. Reply lost: a repetition returns 'finished' or 'requested'.
local run = runs.load(given.number)
local result = 'missing'
if run and run.state == 'running' then
  transitions.requestCancel(run)
  result = 'requested'
elseif run and (run.state == 'waiting' or run.state == 'ready') then
  transitions.finish(run, 'cancelled')
  result = 'cancelled'
elseif run then result = 'finished' end
commit()
return reply({ result = result })
