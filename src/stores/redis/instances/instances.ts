/**
 * Instances. Each is one text: when its lease runs out, whether it was declared dead, up to which claim all were
 * answered, when it joined and beat, its app and declarations; then what it said of itself, as JSON.
 */
import type { BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from '../../../core/instance.js'
import type { DeclaredSet } from '../../../core/store.js'
import { byShard, everywhere } from '../cluster/shards.js'
import { runScript, script } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { homeOf } from '../runs/list.js'
import { runId, runPlace, ticketOf } from '../runs/run-codec.js'
import { word } from '../schema/words.js'

const NOTE_ALIVE = `
local function noteAlive(app, declarations)
  if declarations == '-' then return end
  if redis.call('HEXISTS', KEYS[1] .. 'sets:' .. app, declarations) == 1 then redis.call('HSET', KEYS[1] .. 'alive:' .. app, declarations, int(now)) end
end`

const JOIN = script(`${NOTE_ALIVE}
local inst, lease, app, declarations, info = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local known = redis.call('GET', KEYS[1] .. 'i:' .. inst)
local _, dead, settled, joined = string.match(known or '', '^(%d+) (%d) ([^ ]+) (%d+)')
if dead == '0' then info = string.match(known, '\\n(.*)$')
else
  settled, joined = '-1', int(now)
  redis.call('DEL', KEYS[1] .. 'ic:' .. inst)
end
local words = { int(now + lease), '0', settled, joined, int(now), app, declarations }
redis.call('SET', KEYS[1] .. 'i:' .. inst, table.concat(words, ' ') .. '\\n' .. info)
redis.call('ZADD', KEYS[1] .. 'instances', now + lease, inst)
for at = 6, #ARGV, 2 do redis.call('HSET', KEYS[1] .. 'jobs', ARGV[at], ARGV[at + 1]) end
noteAlive(app, declarations)
return { int(now), 0 }`)

export async function joinInstance(
  server: Server,
  info: InstanceInfo,
  leaseMs: number,
): Promise<{ readonly now: number }> {
  const { id, app, declarations, jobs } = info
  const known = jobs.flatMap((job) => [job.name, JSON.stringify(job)])
  const declared = app === undefined ? '-' : word(declarations)
  const args = [word(id), leaseMs, word(app), declared, JSON.stringify(info), ...known]
  const joined = await everywhere(server, (shard) => server.write(JOIN, shard, args))
  for (const [now] of joined) server.time.heard(Number(now))
  return { now: Number(joined[0]?.[0]) }
}

const BEAT = runScript(`${NOTE_ALIVE}
local inst, lease, settled = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local text = redis.call('GET', KEYS[1] .. 'i:' .. inst)
local _, dead, before, joined, _, app, declarations, info =
  string.match(text or '', '^(%d+) (%d) ([^ ]+) (%d+) (%d+) ([^ ]+) ([^ \\n]+)\\n(.*)$')
if dead ~= '0' then return { int(now), 0, {}, {}, 0 } end

local words = { int(now + lease), '0', int(math.max(tonumber(before), settled)), joined, int(now), app, declarations }
redis.call('SET', KEYS[1] .. 'i:' .. inst, table.concat(words, ' ') .. '\\n' .. info)
redis.call('ZADD', KEYS[1] .. 'instances', now + lease, inst)
redis.call('ZREMRANGEBYSCORE', KEYS[1] .. 'ic:' .. inst, '-inf', settled)
instanceEnds[inst], instanceGraces[inst] = now + lease, lease / 10
noteAlive(app, declarations)

local listed, lost, cancel, unheard = {}, {}, {}, {}
for at = 4, #ARGV, 2 do collect(listed, ARGV[at])[ARGV[at + 1]] = true end
local running = redis.call('HGETALL', KEYS[1] .. 'ir:' .. inst)
for at = 1, #running, 2 do
  local n = running[at]
  local claim, token, cancelled = string.match(running[at + 1], '^([^ ]+) ([^ ]+) (%d)')
  if listed[n] and listed[n][token] then
    listed[n] = nil
    if cancelled == '1' then cancel[#cancel + 1] = n end
  elseif tonumber(claim) <= settled then unheard[#unheard + 1] = n end
end
for n in pairs(listed) do lost[#lost + 1] = n end

-- Runs of claims that were answered, of which the instance knows nothing: the answer was lost.
table.sort(unheard)
loadAll(unheard)
for _, n in ipairs(unheard) do if runs[n] then takeOver(runs[n], false) end end
finish()
return { int(now), 1, lost, cancel, wakes }`)

/** Every shard is told of it. What one of them declared dead is dead. */
export async function beatInstance(server: Server, request: BeatRequest): Promise<BeatResult> {
  const tickets = request.attempts.flatMap((attempt) => {
    const shard = server.tickets.shardOf(attempt)
    return shard === undefined ? [] : [{ ...attempt, shard, number: ticketOf(attempt.run) }]
  })
  const listed = [
    ...request.attempts.map(({ run, token }) => ({
      shard: homeOf(server, run),
      run,
      number: runPlace(run)?.number ?? run,
      token,
    })),
    ...tickets,
  ]
  const attempts = new Map(byShard(listed, ({ shard }) => shard).map(({ shard, items }) => [shard, items]))
  const beats = await everywhere(server, (shard) => beatShard(server, shard, request, attempts.get(shard) ?? []))
  for (const { now } of beats) server.time.heard(now)
  const alive = beats.every((beat) => beat.alive)
  return {
    alive,
    lost: alive ? [...new Set(beats.flatMap(({ lost }) => lost))] : request.attempts.map(({ run }) => run),
    cancel: alive ? beats.flatMap(({ cancel }) => cancel) : [],
    now: beats[0]?.now ?? 0,
  }
}

/** An attempt as a shard knows it: by its run, or by the ticket that stands for it. */
interface Listed {
  readonly run: string
  readonly number: string
  readonly token: number
}

async function beatShard(
  server: Server,
  shard: number,
  { instance, leaseMs, claimsSettled }: BeatRequest,
  attempts: readonly Listed[],
): Promise<BeatResult> {
  const listed = attempts.flatMap(({ number, token }) => [number, token])
  const [now, alive, lost, cancel] = await server.write(BEAT, shard, [
    word(instance),
    leaseMs,
    claimsSettled,
    ...listed,
  ])
  const gone = new Set(textsOf(lost))
  return {
    alive: Number(alive) === 1,
    lost: attempts.filter(({ number }) => gone.has(number)).map(({ run }) => run),
    cancel: textsOf(cancel).map((number) => runId(shard, number)),
    now: Number(now),
  }
}

const LEAVE = runScript(`
local inst = ARGV[1]
if redis.call('EXISTS', KEYS[1] .. 'i:' .. inst) == 0 then return { 0 } end
local ns = redis.call('HKEYS', KEYS[1] .. 'ir:' .. inst)
table.sort(ns)
loadAll(ns)
for _, n in ipairs(ns) do if runs[n] then takeOver(runs[n], false) end end
redis.call('DEL', KEYS[1] .. 'i:' .. inst, KEYS[1] .. 'ic:' .. inst)
redis.call('ZREM', KEYS[1] .. 'instances', inst)
finish()
return { wakes }`)

export async function leaveInstance(server: Server, id: string): Promise<void> {
  await everywhere(server, (shard) => server.write(LEAVE, shard, [word(id)]))
}

const LIST = script(`
local found = {}
for _, inst in ipairs(redis.call('ZRANGE', KEYS[1] .. 'instances', 0, -1)) do
  local text = redis.call('GET', KEYS[1] .. 'i:' .. inst)
  if text then found[#found + 1] = text end
end
return found`)

export async function listInstances(server: Server): Promise<Instance[]> {
  const instances: Instance[] = []
  for (const text of textsOf(await server.read(LIST, 0))) {
    const [head = '', info = '{}'] = text.split('\n')
    const [expires, dead, , joined, beat] = head.split(' ')
    const times = { joinedAt: Number(joined), beatAt: Number(beat), expiresAt: Number(expires) }
    if (dead === '0') instances.push({ ...(JSON.parse(info) as InstanceInfo), ...times })
  }
  return instances.sort((one, other) => one.joinedAt - other.joinedAt)
}

const JOBS = script(`return redis.call('HVALS', KEYS[1] .. 'jobs')`)

export async function listJobs(server: Server): Promise<JobInfo[]> {
  return textsOf(await server.read(JOBS, 0)).map((text) => JSON.parse(text) as JobInfo)
}

const DECLARE = script(`
local app, hash, set = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HSETNX', KEYS[1] .. 'sets:' .. app, hash, int(now) .. ' ' .. set) == 1 then
  redis.call('HSET', KEYS[1] .. 'alive:' .. app, hash, int(now))
end
return { 0 }`)

export async function declareSet(
  server: Server,
  app: string,
  { hash, release, schedules }: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): Promise<void> {
  const set = { hash, ...(release === undefined ? {} : { release }), schedules }
  await server.write(DECLARE, 0, [word(app), word(hash), JSON.stringify(set)])
}

const DECLARED = script(`
local found = {}
local sets, alive = redis.call('HGETALL', KEYS[1] .. 'sets:' .. ARGV[1]), {}
local seen = redis.call('HGETALL', KEYS[1] .. 'alive:' .. ARGV[1])
for at = 1, #seen, 2 do alive[seen[at]] = seen[at + 1] end
for at = 1, #sets, 2 do found[#found + 1] = (alive[sets[at]] or '0') .. ' ' .. sets[at + 1] end
return found`)

export async function listDeclared(server: Server, app: string): Promise<DeclaredSet[]> {
  const lines = textsOf(await server.read(DECLARED, 0, [word(app)]))
  const sets = lines.map((line): DeclaredSet => {
    const [, alive, first, json = '{}'] = /^(\d+) (\d+) (.*)$/s.exec(line) ?? []
    const set = JSON.parse(json) as Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>
    return { ...set, firstSeenAt: Number(first), aliveAt: Number(alive) }
  })
  return sets.sort((one, other) => one.firstSeenAt - other.firstSeenAt)
}
