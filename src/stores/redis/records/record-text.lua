-- Reads and writes records. They are few, so all are in the first shard. Keys: record:<kind>, a hash of texts by id;
-- record-ids:<kind>, the ids in order; record-expiry, the records that expire, scored by when. The layout of a text is
-- in records/record-codec.ts.
local records = {}
whenUsed(records, function()
  local function expiryOf(kind, id) return cjson.encode({ kind, id }) end

  -- Returns the text of a record, or nil if it does not exist or has expired.
  function records.live(kind, id)
    local text = redis.call('HGET', key('record', kind), id)
    if not text then return nil end
    local head = cjson.decode(string.match(text, '^[^\n]*'))
    if head.expiresAt and head.expiresAt <= now then return nil end
    return text
  end

  function records.put(kind, id, ttlMs, body)
    local head = { writtenAt = now, expiresAt = ttlMs and now + ttlMs }
    local text = cjson.encode(head) .. '\n' .. body
    redis.call('HSET', key('record', kind), id, text)
    redis.call('ZADD', key('record-ids', kind), 0, id)
    if ttlMs then redis.call('ZADD', key('record-expiry'), head.expiresAt, expiryOf(kind, id))
    else redis.call('ZREM', key('record-expiry'), expiryOf(kind, id)) end
    return text
  end

  function records.forget(kind, id)
    redis.call('HDEL', key('record', kind), id)
    redis.call('ZREM', key('record-ids', kind), id)
    redis.call('ZREM', key('record-expiry'), expiryOf(kind, id))
  end
end)
