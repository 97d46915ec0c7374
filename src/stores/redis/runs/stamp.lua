-- include: locks/pass-on
-- runs/stamp.lua: sets the keys of runs that wait for a stamp. A run whose job is not exclusive gets none (contract:
-- runs.stamp). A run that has been stamped is left as it is, so a repetition changes nothing. Keys: runs,
-- runs-unstamped, queues and key-* sets.
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
