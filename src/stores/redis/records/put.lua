-- include: records/record-text
-- records/put.lua: writes a record, over one that is there unless `ifAbsent` (contract: records.put).
-- Reply lost: the repetition writes the same again, or finds its own record.
local known = given.ifAbsent and records.live(given.kind, given.id)
if known then return reply({ written = false, text = known }) end
return reply({ written = true, text = records.put(given.kind, given.id, given.ttlMs, given.body) })
