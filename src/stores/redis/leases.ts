/**
 * Locks. One rule decides everything: a lease is its holder's until its time is over AND somebody else took it.
 *
 * - Two that ask at once: scripts come one after the other, so the first takes the permit and the second finds it busy.
 *   Its `until` says when to ask again, and with `waitMs` it has a place in the line.
 * - A holder that stalls past its time and comes back: if nobody took the lease, it renews and goes on. If somebody
 *   did, its line is gone, and renew, release and (for a run) settle are refused.
 * - A holder that dies: nobody has to notice. The next that asks takes its place, with a higher token.
 * - A waiter that dies: its place is given up `waitMs` after it last asked. If the lease was handed to it in between, it
 *   runs out like any other.
 * - A release that comes twice, or late: it only ever removes the holder's own line.
 * - A failover that loses the last writes: the lease may be given to another while its holder still trusts it, until
 *   its next renewal fails. The token of the new one is higher all the same, by the clock and by what clients have seen.
 */
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest, RenewRequest } from '../../core/lease.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { Page } from '../../core/store.js'
import { listOf, type Server, textsOf } from './connection.js'
import { firstOf } from './pages.js'
import { runId } from './run-text.js'
import { bareScript, runScript, script } from './script.js'
import { everywhere, inShards, shardOf } from './shards.js'
import { fromWord, word } from './token-text.js'
import { WAKE_LEASES } from './wakes.js'

/** How a holder is told of: as in its line, with its end by its instance's where it is a run. */
const TOLD = `
local function told(m, h)
  return h.holder .. ' ' .. int(h.token) .. ' ' .. int(h.acquired) .. ' ' .. int(endOf(h)) .. ' ' .. h.released .. ' ' ..
    h.inst .. ' ' .. h.run
end`

/**
 * What most locks meet: a name that nobody holds or waits for, one that is held, or one's own. That includes whoever waits
 * and asks again, of whom there may be many. It answers nothing when there is more to it.
 */
const ACQUIRE_FAST = bareScript(`
local key, holder, ttl, permits, inst, floor, waitMs, name =
  KEYS[1] .. 'n:' .. ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local now = math.floor(nowUs / 1000)
local int = '%.0f'
local text = redis.call('GET', key)
local last, flags, holders = '0', '-', ''
if text then last, flags, holders = string.match(text, '^(%d+) ([^ \\n]+)(.*)$')
else redis.call('ZADD', KEYS[1] .. 'names', 0, name) end
if flags ~= '-' and flags ~= 'w-' then return false end

if holders == '' then
  if flags ~= '-' then return false end
  local token = string.format(int, math.max(last + 1, nowUs, floor))
  local line = string.format('%s %s %.0f %.0f 0 %s -', holder, token, now, now + ttl, inst)
  redis.call('SET', key, token .. ' -\\n' .. line, 'PX', string.format(int, housekeeping(ttl)))
  return { string.format(int, now), 1, line }
end

local other, token, acquired, expires, released, by =
  string.match(holders, '^\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) %-$')
if not other then return false end
if other == holder and released == '0' then
  local line = string.format('%s %s %s %.0f 0 %s -', holder, token, acquired, now + ttl, by)
  if flags == '-' then redis.call('SET', key, last .. ' -\\n' .. line, 'PX', string.format(int, housekeeping(ttl)))
  else redis.call('SET', key, last .. ' w-\\n' .. line) end
  return { string.format(int, now), 1, line }
end
if permits ~= '1' or tonumber(expires) <= now or other == holder then return false end
if waitMs > 0 then
  if redis.call('HEXISTS', KEYS[1] .. 'wd:' .. ARGV[1], holder) == 0 then return false end
  local place = string.format('%s %s %s %.0f %.0f', ttl, permits, inst, floor, now + waitMs)
  redis.call('HSET', KEYS[1] .. 'wd:' .. ARGV[1], holder, place)
end
return { string.format(int, now), 0, expires }`)

const ACQUIRE = runScript(`${TOLD}
local K, holder, ttl, permits, inst, floor, waitMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local m = name(K)
serveWaiters(m)

local function takePermit()
  local own = holderOf(m, holder)
  if own and own.released == '0' then
    if own.run == '-' then
      own.expires = now + ttl
      changeName(m)
    end
    return own
  end
  if isBusy(m, permits) then return nil end
  if own then removeHolder(m, own) end
  return grantLock(m, holder, ttl, permits, inst, floor)
end

-- Asking again keeps the place and prolongs it.
local function keepPlace()
  if waitMs <= 0 then return end
  if not m.waits then
    m.waits = true
    changeName(m)
    redis.call('SADD', KEYS[1] .. 'blocked', K)
  end
  redis.call('ZADD', KEYS[1] .. 'ww:' .. K, 'NX', int(nextSeq()), holder)
  redis.call('HSET', KEYS[1] .. 'wd:' .. K, holder, ttl .. ' ' .. permits .. ' ' .. inst .. ' ' .. int(floor) .. ' ' .. int(now + waitMs))
end

local lease, answer = takePermit(), nil
if lease then
  if m.waits then dropWaiter(m, holder) end
  answer = told(m, lease)
else
  keepPlace()
  local soonest
  for _, h in ipairs(m.holders) do
    local ends = endOf(h)
    if ends > now then soonest = math.min(soonest or ends, ends) end
  end
  answer = int(soonest or now)
end
touch(touchedNames, K)
finish()
return { int(now), lease and 1 or 0, answer, wakes }`)

export async function acquireLease(server: Server, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
  const shard = shardOf(name, server.shards)
  const args = [word(name), word(holder), ttlMs, permits, word(instance), floor, waitMs]
  const reply = await server.change(ACQUIRE_FAST, shard, [...args, name])
  const [at, acquired, answer] = reply === null ? await server.write(ACQUIRE, shard, args) : listOf(reply)
  const now = Number(at)
  if (acquired !== 1) return { acquired: false, until: Number(answer), now }
  return { acquired: true, lease: toLease(shard, name, String(answer)), now }
}

function toLease(shard: number, name: string, line: string): Lease {
  const [holder = '', token, acquired, expires, released, instance = '-', run = '-'] = line.split(' ')
  return {
    name,
    holder: fromWord(holder) ?? '',
    token: Number(token),
    acquiredAt: Number(acquired),
    expiresAt: Number(expires),
    ...(instance === '-' ? {} : { instance: fromWord(instance) ?? '' }),
    ...(run === '-' ? {} : { run: runId(shard, run) }),
    ...(released === '1' ? { released: true as const } : {}),
  }
}

const RENEW = runScript(`${TOLD}
local results = {}
for at = 1, #ARGV, 4 do
  local m = name(ARGV[at])
  local h = holderOf(m, ARGV[at + 1])
  if h and int(h.token) == ARGV[at + 2] and h.released == '0' then
    if h.run == '-' then
      h.expires = now + tonumber(ARGV[at + 3])
      changeName(m)
    end
    results[#results + 1] = told(m, h)
  else results[#results + 1] = '' end
end
finish()
return { results, wakes }`)

export function renewLeases(server: Server, requests: readonly RenewRequest[]): Promise<(Lease | undefined)[]> {
  return inShards(
    requests,
    ({ name }) => shardOf(name, server.shards),
    async (shard, own) => {
      const args = own.flatMap(({ name, holder, token, ttlMs }) => [word(name), word(holder), token, ttlMs])
      const [results] = await server.write(RENEW, shard, args)
      const lines = textsOf(results)
      return own.map(({ name }, at) => (lines[at] ? toLease(shard, name, lines[at]) : undefined))
    },
  )
}

/** What most locks come to: given back by the one who holds it, while nobody waits. */
const RELEASE_HELD = bareScript(`
local key = KEYS[1] .. 'n:' .. ARGV[1]
local last, holder = string.match(redis.call('GET', key) or '', '^(%d+) %-\\n([^ ]+) %d+ %d+ %d+ 0 [^ ]+ %-$')
if holder ~= ARGV[2] then return false end
redis.call('SET', key, last .. ' -', 'PX', 86400000)
return 1`)

const RELEASE = runScript(`
local K, holder, minHold = ARGV[1], ARGV[2], tonumber(ARGV[3])
local m = name(K)
local h = holderOf(m, holder)
local held = h ~= nil and h.run == '-' and h.released == '0'
local waited = m.waits and dropWaiter(m, holder) == 1
if held then
  wake(LEASES)
  if h.acquired + minHold <= now then removeHolder(m, h)
  else
    h.released, h.expires = '1', h.acquired + minHold
    changeName(m)
  end
end
touch(touchedNames, K)
finish()
return { (held or waited) and 1 or 0, wakes }`)

export async function releaseLease(server: Server, request: ReleaseRequest): Promise<boolean> {
  const { name, holder, minHoldMs = 0 } = request
  const shard = shardOf(name, server.shards)
  const args = [word(name), word(holder)]
  if (minHoldMs === 0 && (await server.change(RELEASE_HELD, shard, args)) === 1) {
    server.announce(WAKE_LEASES)
    return true
  }
  const [released] = await server.write(RELEASE, shard, [...args, minHoldMs])
  return released === 1
}

const RESET = runScript(`
local m = name(ARGV[1])
local holders = {}
for at, h in ipairs(m.holders) do holders[at] = h end
for _, h in ipairs(holders) do
  local r = h.run ~= '-' and load(h.run)
  if r then takeOver(r, false) else removeHolder(m, h) end
end
if #holders > 0 then wake(LEASES + ATTEMPTS) end
finish()
return { #holders, wakes }`)

export async function resetLease(server: Server, name: string): Promise<number> {
  const [count] = await server.write(RESET, shardOf(name, server.shards), [word(name)])
  return Number(count)
}

const INSPECT = runScript(`${TOLD}
local found = {}
for at = 1, #ARGV do
  local m = name(ARGV[at])
  for _, h in ipairs(m.holders) do if endOf(h) > now then found[#found + 1] = ARGV[at] .. ' ' .. told(m, h) end end
end
return found`)

async function inspectAll(server: Server, shard: number, names: readonly string[]): Promise<Lease[]> {
  const lines = textsOf(await server.read(INSPECT, shard, names.map(word)))
  return lines.map((line) => {
    const space = line.indexOf(' ')
    return toLease(shard, fromWord(line.slice(0, space)) ?? '', line.slice(space + 1))
  })
}

export function inspectLease(server: Server, name: string): Promise<Lease[]> {
  return inspectAll(server, shardOf(name, server.shards), [name])
}

const NAMES_FROM = script(`return redis.call('ZRANGEBYLEX', KEYS[1] .. 'names', ARGV[1], '+', 'LIMIT', 0, ARGV[2])`)
const CHUNK = 200

interface LeaseQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
}

/** In order of name and holder. The index may still know names that nobody holds any more. */
export async function listLeases(server: Server, query: LeaseQuery): Promise<Page<Lease>> {
  checkPageLimit(query.limit)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(pages, query.limit, (one, other) => (placeOf(one) < placeOf(other) ? -1 : 1), placeOf)
}

function placeOf({ name, holder }: Lease): string {
  return `${name}\n${holder}`
}

async function listShard(server: Server, shard: number, query: LeaseQuery): Promise<Page<Lease>> {
  const { prefix = '', after, limit } = query
  const found: { readonly lease: Lease; readonly place: string }[] = []
  const afterName = after?.slice(0, after.indexOf('\n'))
  let from = afterName === undefined || afterName < prefix ? `[${prefix}` : `[${afterName}`
  for (let more = true; more && found.length <= limit; ) {
    const names = textsOf(await server.read(NAMES_FROM, shard, [from, CHUNK]))
    const wanted = names.filter((name) => name.startsWith(prefix))
    more = names.length === CHUNK && wanted.length === names.length
    from = `(${names.at(-1) ?? ''}`
    const leases = wanted.length === 0 ? [] : await inspectAll(server, shard, wanted)
    const places = leases.map((lease) => ({ lease, place: placeOf(lease) }))
    const chunk = places.filter(({ place }) => after === undefined || place > after)
    found.push(...chunk.sort((one, other) => (one.place < other.place ? -1 : 1)))
  }
  const page = found.slice(0, limit)
  const items = page.map(({ lease }) => lease)
  return found.length > limit ? { items, next: page.at(-1)?.place ?? '' } : { items }
}
