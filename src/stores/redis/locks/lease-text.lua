-- How scripts read and write the text of a lock or of a run's key. The layout is in locks/lease-codec.ts. In a script,
-- tokens are numbers, and the lock has its `name` and whether it `isStored`.
local leaseText = {}

function leaseText.parse(name, text)
  local lock = text and cjson.decode(text) or { lastToken = '0', holders = {} }
  lock.name, lock.isStored, lock.lastToken = name, text and true, tonumber(lock.lastToken)
  for _, lease in ipairs(lock.holders) do lease.token = tonumber(lease.token) end
  return lock
end

function leaseText.write(lock)
  local holders = {}
  for at, lease in ipairs(lock.holders) do holders[at] = leaseText.tell(lease, lease.expiresAt) end
  return cjson.encode({ lastToken = int(lock.lastToken), waiters = lock.waiters, runs = lock.runs, holders = holders })
end

-- A lease as it is stored and answered.
function leaseText.tell(lease, expiresAt)
  return { holder = lease.holder, token = int(lease.token), acquiredAt = lease.acquiredAt, expiresAt = expiresAt,
    released = lease.released, instance = lease.instance, run = lease.run }
end
