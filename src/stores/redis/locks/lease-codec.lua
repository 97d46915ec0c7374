-- The text of a lock, or of a run's key: one line of JSON under the name.
--
--   {"lastToken":"1700000000000123","waiters":true,"holders":[
--     {"holder":"3b1c:7","token":"1700000000000123","acquiredAt":1700000000000,"expiresAt":1700000030000,"instance":"3b1c"}]}
--
-- `waiters`: locks wait for it. `runs`: runs wait for it. A holder with `run` is an attempt of that run and lasts as long as
-- its instance's lease. One that was `released` before its minimum hold was over stays until then.
local leaseCodec = {}

function leaseCodec.parse(name, text)
  local lock = text and cjson.decode(text) or { lastToken = '0', holders = {} }
  lock.name, lock.isStored, lock.lastToken = name, text and true, tonumber(lock.lastToken)
  for _, lease in ipairs(lock.holders) do lease.token = tonumber(lease.token) end
  return lock
end

function leaseCodec.write(lock)
  local holders = {}
  for at, lease in ipairs(lock.holders) do holders[at] = leaseCodec.tell(lease, lease.expiresAt) end
  return cjson.encode({ lastToken = int(lock.lastToken), waiters = lock.waiters, runs = lock.runs, holders = holders })
end

-- A lease as it is stored and answered.
function leaseCodec.tell(lease, expiresAt)
  return { holder = lease.holder, token = int(lease.token), acquiredAt = lease.acquiredAt, expiresAt = expiresAt,
    released = lease.released, instance = lease.instance, run = lease.run }
end
