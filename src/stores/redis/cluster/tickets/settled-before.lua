-- include: runs/loaded-runs
-- cluster/tickets/settled-before.lua: answers which runs were settled with this token before, by a settlement whose answer
-- was lost. It only reads. Keys: runs.
local settled = {}
for at, each in ipairs(given.attempts) do
  local run = runs.load(each.run)
  settled[at] = run ~= nil and run.settledToken == each.token
end
return reply({ settled = settled })
