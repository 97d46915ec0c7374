-- How scripts read and write a run's text. The layout is in runs/run-codec.ts: they use its first line as a table, and
-- carry the other four, which are the user's, unread (`rest`).
local runText = {}

-- cjson writes 14 digits of a number, so instants beyond the year 5138 are kept as texts.
local WRITABLE = 1e14

function runText.parse(number, text)
  local lineEnd = string.find(text, '\n', 1, true)
  local run = cjson.decode(string.sub(text, 1, lineEnd - 1))
  run.readyAt, run.startBy, run.tick = tonumber(run.readyAt), tonumber(run.startBy), tonumber(run.tick)
  run.number, run.rest = number, string.sub(text, lineEnd)
  return run
end

local function writable(instant) return instant and instant >= WRITABLE and int(instant) or instant end

function runText.write(run)
  local number, rest, readyAt, startBy, tick = run.number, run.rest, run.readyAt, run.startBy, run.tick
  run.number, run.rest, run.readyAt, run.startBy, run.tick = nil, nil, writable(readyAt), writable(startBy), writable(tick)
  local text = cjson.encode(run) .. rest
  run.number, run.rest, run.readyAt, run.startBy, run.tick = number, rest, readyAt, startBy, tick
  return text
end

-- The lines behind the first: options and payload are one text.
function runText.linesFor(body) return '\n\n\n' .. body end

function runText.setEnding(run, result, err)
  local resultEnd = string.find(run.rest, '\n', 2, true)
  local errorEnd = string.find(run.rest, '\n', resultEnd + 1, true)
  run.rest = '\n' .. (result or '') .. '\n' .. (err or '') .. string.sub(run.rest, errorEnd)
end
