-- include: runs/overlap
-- The unfinished runs of a schedule as one text, for the planner: of each its state, whether it began, and its tick, as in
-- `running:begun:1700000000000 waiting:new:-`. A plan rests on it, and is only written while it is still the same.
-- A planner that knows a thousand of them, and the newest that wait, knows enough.
local MOST_UNFINISHED = 1000

local function unfinishedText(schedule)
  local words = {}
  for at, run in ipairs(overlap.unfinished(schedule, MOST_UNFINISHED)) do
    words[at] = run.state .. ':' .. (run.attempt == 0 and 'new' or 'begun') .. ':' .. (run.origin == 'tick' and int(run.tick) or '-')
  end
  return table.concat(words, ' ')
end

-- A schedule's text begins with its overlap policy. One that allows overlap needs no unfinished runs.
local function allowsOverlap(text) return string.sub(text, 1, 6) == 'allow ' end
