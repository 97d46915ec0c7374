-- include: runs/loaded-runs
-- cluster/tickets/settled-before.lua: which runs were settled with the token already: the answer to that was lost. It only
-- looks. Keys: runs.
local settled = {}
for at, each in ipairs(given.attempts) do
  local run = runs.load(each.run)
  settled[at] = run ~= nil and run.settledToken == each.token
end
return reply({ settled = settled })
