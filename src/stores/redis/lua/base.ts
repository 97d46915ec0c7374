/**
 * What every script begins with. `KEYS[1]` is the beginning of all keys of its shard, hash tag included, so that a
 * cluster knows where to send it.
 *
 * A script cannot be rolled back: it looks, decides, and only then writes. Writes of one kind are collected and done by
 * few commands, because every command called from Lua costs about as much as the work in it.
 */

/** What time it is, and what scripts need besides that give out numbers or let keys expire. */
export interface ScriptClock {
  readonly time: string
  /** The time as text, in microseconds: making numbers of it and texts again costs as much as a command. */
  readonly stamp: string
  readonly more: string
}

const STAMP_OF_NUMBER = `
local stamp = string.format('%.0f', nowUs)`

const MORE = `
local countFrom = nowUs
local function housekeeping(ms) return math.max(ms * 3, 1000) end
local function passed(us) end`

/** Time is the server's. */
export const CLOCK: ScriptClock = {
  time: `
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]`,
  stamp: `
local time = redis.call('TIME')
local stamp = time[1] .. string.sub('00000' .. time[2], -6)`,
  more: MORE,
}

/** For benches: the server's time and as much as the key `shift` says, in microseconds. */
const SHIFTED_TIME = `${CLOCK.time} + (redis.call('GET', KEYS[1] .. 'shift') or 0)`
export const SHIFTED_CLOCK: ScriptClock = {
  time: SHIFTED_TIME,
  stamp: SHIFTED_TIME + STAMP_OF_NUMBER,
  more: MORE,
}

/**
 * For tests: a clock that is turned by hand, and that all shards of one server share. Its milliseconds stand still; below
 * them it moves on with every script and every number that a script gave out, so that what came first is older. Nothing
 * expires meanwhile. Shards of a cluster cannot share it: each is told the time, and from where to count.
 */
const HAND_TURNED_TIME = `
local toldNow, toldCount = string.match(redis.call('GET', KEYS[1] .. 'told') or '', '^(%d+) (%d+)')
local clock = toldNow and KEYS[1] .. 'own' or string.match(KEYS[1], '^(.*){') .. '{0}:clock'
local countFrom = tonumber(toldCount) or redis.call('INCR', clock)
local nowUs = toldNow and toldNow * 1000 or math.floor(countFrom / 1000) * 1000`
export const HAND_TURNED_CLOCK: ScriptClock = {
  time: HAND_TURNED_TIME,
  stamp: HAND_TURNED_TIME + STAMP_OF_NUMBER,
  more: `
local function housekeeping(ms) return 86400000 end
local function passed(us) redis.call('SET', clock, string.format('%.0f', math.max(us, countFrom))) end`,
}

export const BASE = `
local now = math.floor(nowUs / 1000)
local wakes = 0
local SCHEDULES, RUNS, LEASES, ATTEMPTS, SETTLED, TICKETS = 1, 2, 4, 8, 16, 32

local function int(number) return string.format('%.0f', number) end
local nowText = int(now)

-- Words, as token-text.ts makes them.
local function escape(text)
  if text == '' then return '%' end
  if text == '-' then return '%2d' end
  return (string.gsub(text, '[%%%c ]', function(char) return string.format('%%%02x', string.byte(char)) end))
end
local function unescape(word)
  if word == '%' then return '' end
  return (string.gsub(word, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

local function wake(bit_) wakes = bit.bor(wakes, bit_) end

local function batch(command, key, args)
  for first = 1, #args, 2000 do redis.call(command, key, unpack(args, first, math.min(first + 1999, #args))) end
end

-- Numbers that only grow: of runs, of versions, of endings. They follow the clock, so that shards agree on what is older.
local seq
local function numbersFrom(floor) countFrom = math.max(countFrom, floor) end
local function nextSeq()
  if not seq then seq = tonumber(redis.call('HGET', KEYS[1] .. 'meta', 'seq') or '0') end
  seq = math.max(seq + 1, countFrom)
  return seq
end

-- The number of a run. Its upper half is the same for many, and printing whole numbers of nine digits or less is quick.
local upper, numberFormat, format = 0, '00000000%08d', string.format
local function nextNumber()
  seq = seq and seq + 1 or nextSeq()
  local lower = seq - upper
  if lower >= 100000000 then
    upper = seq - seq % 100000000
    numberFormat, lower = format('%08d', upper / 100000000) .. '%08d', seq - upper
  end
  return format(numberFormat, lower)
end

-- Schedules that are due at one instant come in the order in which they were written: the fraction is their place in
-- line. It is a multiple of 1/4096, which is as fine as a score can be, in as many digits as tell them apart.
local line, lineOf, lineFormat
local function inLine(due)
  if not line then line = tonumber(redis.call('HGET', KEYS[1] .. 'meta', 'line') or '0') end
  if due ~= lineOf then lineOf, lineFormat = due, due .. '.%04d' end
  line = (line + 1) % 4096
  return format(lineFormat, line * 10000 / 4096 + 0.5)
end

local function saveSeq()
  if seq then
    redis.call('HSET', KEYS[1] .. 'meta', 'seq', int(seq))
    passed(seq)
  end
  if line then redis.call('HSET', KEYS[1] .. 'meta', 'line', line) end
end`
