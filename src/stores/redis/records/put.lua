-- include: records/record-text
-- records/put.lua: writes a record. Replaces an existing one, unless `ifAbsent` is set (contract: records.put).
-- Reply lost: a repetition writes the same again or, with `ifAbsent`, finds its own record.
local known = given.ifAbsent and records.live(given.kind, given.id)
if known then return reply({ written = false, text = known }) end
return reply({ written = true, text = records.put(given.kind, given.id, given.ttlMs, given.body) })
