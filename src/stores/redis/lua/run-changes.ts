/**
 * Where a run stands while it is unfinished, with all that each step moves.
 *
 * | key          | what stands there                                                             |
 * | ------------ | ----------------------------------------------------------------------------- |
 * | q:prio:target| ready runs, by when they may start; those of later are not due yet            |
 * | p:target     | the priorities that a target has queues for                                   |
 * | targets      | the targets that have any                                                     |
 * | e: w: d: l:  | a schedule's runs: engaged, waiting for those, not due yet, and ended         |
 * | b:           | a schedule's backfills, by instant and name                                   |
 * | k: ks: kw:   | a key's runs that are due or began; and of these the standing and the waiting   |
 * | kb:          | of the waiting, those that skip as soon as the key is known to be busy          |
 * | kd: kv:      | a key's runs that are not due yet: ready, and waiting for something else       |
 * | ir:          | an instance's running runs, with claim, token, and whether to cancel          |
 * | out, sent    | runs whose key is in another shard: without a ticket there yet, and with one  |
 * | checked      | of these, those that are only there if their key is free when they get theirs |
 * | drop         | runs that ended without having begun, whose tickets are to go too             |
 * | held         | tickets of runs that wait, by when they were last sent                        |
 * | notices      | tickets that were skipped, with the reason, until their runs are told         |
 * | unst         | runs that wait for their stamp                                                |
 * | all, ended   | every run by its number, and those that ended by when                         |
 */
export const RUN_CHANGES = `
local queueKnown, queueChanged = {}, false

local function queueKey(r) return KEYS[1] .. 'q:' .. r.prio .. ':' .. r.target end

local function knowQueue(prio, target)
  local both = prio .. ':' .. target
  if queueKnown[both] then return end
  queueKnown[both] = true
  local isNew = redis.call('ZADD', KEYS[1] .. 'p:' .. target, -tonumber(prio), prio) == 1
  if isNew then redis.call('ZADD', KEYS[1] .. 'targets', 0, target) end
end

-- A run whose key is elsewhere needs a ticket there, when it is ready and also while it waits for others of its schedule.
local function askForTicket(r)
  redis.call('ZADD', KEYS[1] .. 'out', now, r.n)
  wake(TICKETS)
end

-- One that never begins leaves no ticket behind.
local function dropTicket(r)
  if r.st == 'X' or plain(r) or not fixed(r).remote then return end
  if redis.call('ZSCORE', KEYS[1] .. 'sent', r.n) or redis.call('ZSCORE', KEYS[1] .. 'out', r.n) then
    redis.call('HSET', KEYS[1] .. 'drop', r.n, r.remote .. ' ' .. r.attempt)
    wake(TICKETS)
  end
  redis.call('SREM', KEYS[1] .. 'checked', r.n)
end

-- Takes a run out of every queue that it stands in.
local function withdraw(r)
  if r.new then
    r.new = nil
    return
  end
  if r.st ~= 'X' and not plain(r) and fixed(r).remote then
    redis.call('ZREM', KEYS[1] .. 'out', r.n)
    redis.call('ZREM', KEYS[1] .. 'sent', r.n)
  end
  if r.st == 'X' then
    local gone = collect(runningGone, r.inst)
    gone[#gone + 1] = r.n
  elseif r.st == 'R' then
    fixed(r)
    if not r.remote then redis.call('ZREM', queueKey(r), r.n) end
    if r.key ~= '-' then
      redis.call('ZREM', KEYS[1] .. 'ks:' .. r.key, r.n)
      if r.attempt == '0' then redis.call('ZREM', KEYS[1] .. 'kd:' .. r.key, r.n) end
    end
  elseif r.st == 'W' then
    fixed(r)
    r.engaged = true
    if r.key ~= '-' then redis.call('ZREM', KEYS[1] .. 'kv:' .. r.key, r.n) end
    if r.wait == 's' then redis.call('ZREM', KEYS[1] .. 'unst', r.n)
    elseif r.wait == 'o' then redis.call('ZREM', KEYS[1] .. 'w:' .. r.sched, r.n)
    else
      redis.call('ZREM', KEYS[1] .. 'kw:' .. r.key, r.n)
      if r.wait == 'b' then redis.call('SREM', KEYS[1] .. 'kb:' .. r.key, r.n) end
    end
  end
  r.wait = '-'
end

local function makeWait(r, why)
  withdraw(r)
  fixed(r)
  r.st, r.wait = 'W', why
  change(r)
  if r.sched ~= '-' then
    if r.origin ~= 't' then redis.call('ZREM', KEYS[1] .. 'd:' .. r.sched, r.n) end
    if why == 'o' then
      redis.call('ZREM', KEYS[1] .. 'e:' .. r.sched, r.n)
      redis.call('ZADD', KEYS[1] .. 'w:' .. r.sched, r.n, r.n)
    else redis.call('ZADD', KEYS[1] .. 'e:' .. r.sched, r.n, r.n) end
  end
  if r.key ~= '-' then
    if tonumber(r.readyAt) <= now then redis.call('ZADD', KEYS[1] .. 'k:' .. r.key, order(r.n), r.n)
    else redis.call('ZADD', KEYS[1] .. 'kv:' .. r.key, r.readyAt, r.n) end
  end
  if r.remote and why == 'o' then askForTicket(r) end
  if why == 's' then redis.call('ZADD', KEYS[1] .. 'unst', r.n, r.n)
  elseif why == 'k' or why == 'b' then
    redis.call('ZADD', KEYS[1] .. 'kw:' .. r.key, order(r.n), r.n)
    if why == 'b' then redis.call('SADD', KEYS[1] .. 'kb:' .. r.key, r.n) end
    local m = name(r.key)
    if not m.runs then
      m.runs = true
      changeName(m)
      redis.call('SADD', KEYS[1] .. 'blocked', r.key)
    end
  end
end

-- Puts a run where claims look for it, now or when its time has come. One without its key waits for that first.
function makeReady(r)
  fixed(r)
  if r.unst == '1' then return makeWait(r, 's') end
  withdraw(r)
  r.st = 'R'
  change(r)
  if r.remote then askForTicket(r)
  else
    queueChanged = true
    knowQueue(r.prio, r.target)
    redis.call('ZADD', queueKey(r), r.readyAt, r.n)
  end
  local due = tonumber(r.readyAt) <= now
  if r.sched ~= '-' then
    -- What is not due yet blocks nobody, but for ticks: only one is recorded ahead where they may not overlap.
    if due or r.origin == 't' or r.attempt ~= '0' or r.engaged then
      if r.origin ~= 't' then redis.call('ZREM', KEYS[1] .. 'd:' .. r.sched, r.n) end
      redis.call('ZADD', KEYS[1] .. 'e:' .. r.sched, r.n, r.n)
    else redis.call('ZADD', KEYS[1] .. 'd:' .. r.sched, r.readyAt, r.n) end
  end
  if r.key ~= '-' then
    if due then
      redis.call('ZADD', KEYS[1] .. 'k:' .. r.key, order(r.n), r.n)
      redis.call('ZADD', KEYS[1] .. 'ks:' .. r.key, order(r.n), r.n)
    elseif r.attempt == '0' then redis.call('ZADD', KEYS[1] .. 'kd:' .. r.key, r.readyAt, r.n) end
  end
  wake(RUNS)
end

local function freeKey(r)
  local m = name(r.key)
  for _, h in ipairs(m.holders) do
    if h.run == r.n then
      removeHolder(m, h)
      wake(LEASES)
      return
    end
  end
end

local function holdsKey(r)
  for _, h in ipairs(name(r.key).holders) do if h.run == r.n and int(h.token) == r.token then return true end end
  return false
end

-- A ticket that was claimed and whose run is not known to have started: that run may be gone. Its state says so by what it
-- waits for: u.
local function isUnsure(h)
  local t = isTicket(h.run) and load(h.run)
  return t and t.st == 'X' and t.wait == 'u'
end

local function mayBeFree(m)
  for _, h in ipairs(m.holders) do if endOf(h) > now and isUnsure(h) then return true end end
  return false
end

local function addSkip(sched, from, to, count, reason)
  local member = nextNumber() .. ' ' .. from .. ' ' .. to .. ' ' .. count .. ' ' .. reason
  redis.call('ZADD', KEYS[1] .. 'sk:' .. sched, to, member)
  redis.call('ZADD', KEYS[1] .. 'skips', now, sched .. ' ' .. member)
end

local function disengage(r)
  if r.sched ~= '-' then
    redis.call('ZREM', KEYS[1] .. 'e:' .. r.sched, r.n)
    if r.origin ~= 't' then redis.call('ZREM', KEYS[1] .. 'd:' .. r.sched, r.n) end
    touch(touchedLanes, r.sched)
  end
  if r.key ~= '-' then
    redis.call('ZREM', KEYS[1] .. 'k:' .. r.key, r.n)
    touch(touchedNames, r.key)
  end
end`
