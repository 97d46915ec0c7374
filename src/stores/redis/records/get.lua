-- include: records/record-text
-- records/get.lua: returns one record (contract: records.get). It only reads.
return reply({ text = records.live(given.kind, given.id) })
