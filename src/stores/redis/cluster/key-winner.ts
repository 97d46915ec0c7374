/** Who stands in the way of a run that is enqueued on condition that its key is free. */
export const KEY_WINNER = `
-- The run that has the key, when as many as its limit are due or executing, or one is ready at the same instant.
local function keyWinner(f, readyAt)
  ripenKey(f.key)
  if readyAt > now then return redis.call('ZRANGEBYSCORE', KEYS[1] .. 'kd:' .. f.key, int(readyAt), int(readyAt), 'LIMIT', 0, 1)[1] end
  local engaged, holder = redis.call('ZCARD', KEYS[1] .. 'k:' .. f.key), nil
  if engaged < tonumber(f.limit) then return nil end
  for _, h in ipairs(name(f.key).holders) do
    -- Its claim decides, when the run of that ticket has started or is known to be gone.
    if isUnsure(h) then engaged = engaged - 1 elseif h.run ~= '-' then holder = holder or h.run end
  end
  if engaged < tonumber(f.limit) then return nil end
  if holder then return holder end
  local standing, waiting = redis.call('ZRANGE', KEYS[1] .. 'ks:' .. f.key, 0, 0)[1], redis.call('ZRANGE', KEYS[1] .. 'kw:' .. f.key, 0, 0)[1]
  if standing and waiting then return standing < waiting and standing or waiting end
  if standing or waiting then return standing or waiting end
  -- One between attempts, or else the oldest that waits for others of its schedule.
  local rest = redis.call('ZRANGE', KEYS[1] .. 'k:' .. f.key, 0, 99)
  loadAll(rest)
  for _, n in ipairs(rest) do if runs[n] and runs[n].attempt ~= '0' then return n end end
  return rest[1]
end`
