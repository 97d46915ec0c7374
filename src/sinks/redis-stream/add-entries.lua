-- Adds entries to a stream, each once.
--
-- The ids of the last window are in a sorted set beside the stream, scored by the server's time. An entry whose id is already
-- in the set is not added again. One script does both, so that no other client can act in between, and a repetition after a
-- lost answer adds nothing. The set is in the stream's cluster slot, and expires when nothing was added for a window.
--
-- KEYS: the stream, the set of ids.
-- ARGV: the window in ms (0: no deduplication), the most entries that the stream keeps (0: all), the number of fields, their
-- names, and for each entry its id and the values of its fields.
-- Returns for each entry 1, or the server's error.
local stream, seen = KEYS[1], KEYS[2]
local window, most, names = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if window > 0 then redis.call('ZREMRANGEBYSCORE', seen, '-inf', now - window) end

-- XADD takes names and values in turns: the names stay, the values change with each entry.
local entry = {}
for field = 1, names do entry[2 * field - 1] = ARGV[3 + field] end

local outcomes = {}
for at = 4 + names, #ARGV, names + 1 do
  local id, outcome = ARGV[at], 1
  if window == 0 or redis.call('ZADD', seen, 'NX', now, id) == 1 then
    for field = 1, names do entry[2 * field] = ARGV[at + field] end
    local added = redis.pcall('XADD', stream, '*', unpack(entry))
    if type(added) == 'table' and added.err then
      if window > 0 then redis.call('ZREM', seen, id) end
      outcome = added.err
    end
  end
  outcomes[#outcomes + 1] = outcome
end

if window > 0 then redis.call('PEXPIRE', seen, window) end
if most > 0 then redis.pcall('XTRIM', stream, 'MAXLEN', '~', most) end
return outcomes
