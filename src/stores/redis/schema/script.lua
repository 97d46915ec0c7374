-- The beginning of every script, after its clock.
--
--   given           the parameters by name, as lua-script.ts declares them
--   reply(answer)   the results by name, with the hints of `wake`
--   now             the store's time, in milliseconds
--   key(name, ...)  the only place that makes the name of a key: keys.ts lists all of them
--
-- A script cannot be rolled back, so it reads and decides before it writes.
-- luacheck: push ignore 211
local now = math.floor(clock.nowUs / 1000)
local given = ARGV[1] and cjson.decode(ARGV[1])

local function key(name, one, other)
  if other then return KEYS[1] .. name .. ':' .. one .. ':' .. other end
  if one then return KEYS[1] .. name .. ':' .. one end
  return KEYS[1] .. name
end

-- A whole number as text. cjson writes only 14 digits of a number, and a token has 16: so stored texts and replies have
-- tokens as strings.
local function int(number) return string.format('%.0f', number) end

-- Notes a hint. 'schedules', 'runs', 'leases', 'attempts' and 'settled' are for all instances. At 'tickets' the process
-- that called the script delivers tickets.
local woken, isWoken = {}, {}
local function wake(what)
  if isWoken[what] then return end
  isWoken[what] = true
  woken[#woken + 1] = what
end

local function reply(answer) return table.concat(woken, ' ') .. '\n' .. cjson.encode(answer) end

-- Runs one command with many arguments in several parts, because a Lua function takes at most some 8,000 arguments.
local BATCH = 2000
local function batch(command, name, args)
  for first = 1, #args, BATCH do redis.call(command, name, unpack(args, first, math.min(first + BATCH - 1, #args))) end
end
local function readMany(command, name, fields)
  local found = {}
  for first = 1, #fields, BATCH do
    local part = redis.call(command, name, unpack(fields, first, math.min(first + BATCH - 1, #fields)))
    for at = 1, #part do found[first + at - 1] = part[at] end
  end
  return found
end

-- Fills an included module when a script first uses it. A call needs few of the modules that its script includes, and
-- creating the hundred functions of all of them takes longer than acquiring a lock.
local makers, unused = {}, {}
function unused.__index(module, name)
  setmetatable(module, nil)
  makers[module]()
  return module[name]
end
local function whenUsed(module, make)
  makers[module] = make
  setmetatable(module, unused)
end
local function isUsed(module) return getmetatable(module) == nil end
-- luacheck: pop
