-- include: locks/pass-on
-- instances/beat.lua: an instance renews its lease, and lists the attempts that it runs (contract: instances.beat).
--
-- The store may have a run as running on this instance although the beat does not list it. If the claim that started
-- the run was answered or has failed, the run never reached the instance: it becomes ready again. The other way round,
-- an attempt that the beat lists but that no longer runs on this instance is returned as lost.
-- Keys: instance, instances, instance-running, instance-claims, and those of each run. Reply lost: the next beat
-- returns the same.
local instance = instances.load(given.instance)
if not instance or instance.dead then return reply({ now = now, alive = false }) end

local lastBeatAt = instance.beatAt
instance.expiresAt, instance.beatAt = now + given.leaseMs, now
instance.claimsSettled = math.max(instance.claimsSettled, given.claimsSettled)
instances.save(given.instance, instance)
redis.call('ZADD', key('instances'), instance.expiresAt, given.instance)
redis.call('ZREMRANGEBYSCORE', key('instance-claims', given.instance), '-inf', given.claimsSettled)
instances.noteDeclarations(instance)

local listed, lost, cancel, unheard = {}, {}, {}, {}
for _, attempt in ipairs(given.attempts) do
  listed[attempt.run] = listed[attempt.run] or {}
  listed[attempt.run][attempt.token] = true
end
local running = redis.call('ZRANGE', key('instance-running', given.instance), 0, -1)
for _, run in ipairs(runs.loadMany(running)) do
  local tokens = listed[run.number]
  if tokens and tokens[run.token] then
    listed[run.number] = nil
    if run.cancelRequested then cancel[#cancel + 1] = run.number end
  elseif run.claim <= given.claimsSettled then unheard[#unheard + 1] = run end
end
for number in pairs(listed) do lost[#lost + 1] = number end
for _, run in ipairs(unheard) do transitions.takeOver(run, false) end
commit()
return reply({ now = now, alive = true, lost = lost, cancel = cancel, lastBeatAt = lastBeatAt })
