-- include: records/record-text
-- records/remove.lua: deletes a record (contract: records.remove). Reply lost: a repetition returns that there was
-- none.
local removed = records.live(given.kind, given.id) ~= nil
records.forget(given.kind, given.id)
return reply({ removed = removed })
