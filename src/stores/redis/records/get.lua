-- include: records/record-text
-- records/get.lua: one record (contract: records.get). It only looks.
return reply({ text = records.live(given.kind, given.id) })
