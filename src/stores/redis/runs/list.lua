-- runs/list.lua: lists runs, newest first, from the smallest set that has all requested runs (contract: runs.list).
-- Returns them as number and text, where the next page begins, and how many runs of the shard are unfinished.
-- Keys: runs, runs-all, runs-ended, runs-unstamped, instances, instance-running, and the sets of a schedule. It only
-- reads.
local from = given.before and '(' .. given.before or '+inf'
local newest = {}
local function add(name)
  for _, number in ipairs(redis.call('ZREVRANGEBYSCORE', name, from, '-inf', 'LIMIT', 0, given.limit)) do
    newest[#newest + 1] = number
  end
end

local function addRunning()
  for _, id in ipairs(redis.call('ZRANGE', key('instances'), 0, -1)) do
    for _, number in ipairs(redis.call('ZRANGE', key('instance-running', id), 0, -1)) do
      local isBefore = not given.before or number < given.before
      -- instance-running also has tickets. They are not runs, and not in runs-all.
      if isBefore and redis.call('ZSCORE', key('runs-all'), number) then newest[#newest + 1] = number end
    end
  end
  table.sort(newest, function(one, other) return one > other end)
end

if given.schedule then
  for _, set in ipairs({ 'schedule-engaged', 'schedule-waiting', 'schedule-ended' }) do add(key(set, given.schedule)) end
  -- This set is sorted by when runs are due, not by number, so all of it is read.
  for _, number in ipairs(redis.call('ZRANGE', key('schedule-later', given.schedule), 0, -1)) do
    if not given.before or number < given.before then newest[#newest + 1] = number end
  end
  table.sort(newest, function(one, other) return one > other end)
elseif given.running then addRunning()
else add(key(given.unstamped and 'runs-unstamped' or 'runs-all')) end

local found = {}
for at = 1, math.min(#newest, given.limit) do
  local text = redis.call('HGET', key('runs'), newest[at])
  if text then found[#found + 1] = newest[at] .. '\n' .. text end
end
local open = redis.call('ZCARD', key('runs-all')) - redis.call('ZCARD', key('runs-ended'))
return reply({ runs = found, next = #newest >= given.limit and newest[given.limit] or nil, open = open })
