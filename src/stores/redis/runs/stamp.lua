-- include: locks/pass-on
-- runs/stamp.lua: gives runs that wait for a stamp their key, or none (contract: runs.stamp). One that was stamped is left
-- alone, so repeating it changes nothing. Keys: runs, runs-unstamped, queues and lines.
for _, stamp in ipairs(given.stamps) do
  local run = runs.load(stamp.run)
  if run and run.unstamped and (run.state == 'waiting' or run.state == 'ready') then
    run.unstamped, run.key, run.permits, run.whenBusy, run.keyShard =
      nil, stamp.key, stamp.permits, stamp.whenBusy, stamp.keyShard
    runs.change(run)
    if run.waitsFor == 'stamp' then transitions.makeReady(run) end
  end
end
commit()
return reply({})
