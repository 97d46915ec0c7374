-- include: records/record-text
-- records/list.lua: returns the records of a kind, in order of id (contract: records.list). Leaves out records that
-- have expired and are not deleted yet. It only reads.
local command, last = 'ZRANGEBYLEX', '+'
if given.backwards then command, last = 'ZREVRANGEBYLEX', '-' end
local found, from = {}, given.from
repeat
  local chunk = redis.call(command, key('record-ids', given.kind), from, last, 'LIMIT', 0, given.limit)
  for _, id in ipairs(chunk) do
    local text = records.live(given.kind, id)
    if text and #found < given.limit then found[#found + 1] = { id = id, text = text } end
    from = '(' .. id
  end
until #chunk < given.limit or #found >= given.limit
return reply({ records = found })
