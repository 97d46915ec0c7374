-- include: locks/pass-on
-- include: schedules/take-back
-- schedules/write.lua: writes a decision about schedules, if all of them are still as they were read. Otherwise it
-- writes nothing, and the caller reads and decides again (contract: schedules.put, remove, pause, resume).
--
-- The layout of a schedule's text is in schedules/schedule-codec.ts.
-- Keys: schedules, schedule-ids, schedule-due, schedules-unstamped, schedules-finished, and the runs of each.
-- Crash: either everything or nothing was written. Reply lost: a repetition finds the new text, and decides to change
-- nothing.

-- Instances get a hint if a schedule is due within this time.
local SOON_MS = 60000

numbers.startFrom(given.startFrom)
for _, change in ipairs(given.changes) do
  local text = redis.call('HGET', key('schedules'), change.id) or ''
  if text ~= change.text then return reply({ written = false, now = now, versionsFrom = '0' }) end
  if text ~= '' and takeBack.unclaimedText(change.id) ~= change.unclaimed then
    return reply({ written = false, now = now, versionsFrom = '0' })
  end
end

local versionsFrom = numbers.next()
local texts, ids, due, unstamped = {}, {}, {}, {}

local function forget(change)
  takeBack.cancelBetweenAttempts(change.id)
  takeBack.forgetSchedule(change.id)
end

local function write(change, to)
  local isNew = change.text == ''
  local version = versionsFrom + to.place
  numbers.skipTo(version)
  texts[#texts + 1] = change.id
  texts[#texts + 1] = to.overlap .. ' ' .. int(version) .. ' ' .. to.progress .. '\n' .. to.definition
  if isNew then
    ids[#ids + 1] = 0
    ids[#ids + 1] = change.id
  end
  if to.dueAt then
    due[#due + 1] = numbers.inLine(to.dueAt)
    due[#due + 1] = change.id
    if to.dueAt <= now + SOON_MS then wake('schedules') end
  elseif not isNew then redis.call('ZREM', key('schedule-due'), change.id) end
  if to.unstamped then
    unstamped[#unstamped + 1] = 0
    unstamped[#unstamped + 1] = change.id
  elseif not isNew then redis.call('ZREM', key('schedules-unstamped'), change.id) end
  if to.goesAt then redis.call('ZADD', key('schedules-finished'), to.goesAt, change.id)
  elseif not isNew then redis.call('ZREM', key('schedules-finished'), change.id) end
end

for _, change in ipairs(given.changes) do
  takeBack.apply(change.id, change.takeBack)
  if change.to then write(change, change.to) else forget(change) end
end
batch('HSET', key('schedules'), texts)
batch('ZADD', key('schedule-ids'), ids)
batch('ZADD', key('schedule-due'), due)
batch('ZADD', key('schedules-unstamped'), unstamped)
commit()
return reply({ written = true, now = now, versionsFrom = int(versionsFrom) })
