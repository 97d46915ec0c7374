/** Taking a lock, with all that can be in the way. `leases.ts` says how locks work. */
import { type AcquireRequest, type AcquireResult, FRESH_PLACE } from '../../../core/lease.js'
import { bareScript, runScript } from '../connection/script.js'
import type { Server } from '../connection/server.js'
import { word } from '../schema/words.js'
import { TOLD, toLease } from './lease-codec.js'

const ACQUIRE = runScript(`${TOLD}
local K, holder, ttl, permits, inst, floor, waitMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local m = name(K)

local function extendOwn()
  local own = holderOf(m, holder)
  if not own or own.released ~= '0' then return nil end
  if own.run == '-' then
    own.expires = now + ttl
    changeName(m)
  end
  return own
end

local function takePermit()
  local own = extendOwn()
  if own then return own end
  serveWaiters(m)
  own = extendOwn()
  if own then return own end
  if isBusy(m, permits) then return nil end
  local released = holderOf(m, holder)
  if released then removeHolder(m, released) end
  return grantLock(m, holder, ttl, permits, inst, floor)
end

-- Asking again keeps the place and prolongs it.
local function keepPlace()
  if waitMs <= 0 then return end
  local same, ends = string.match(redis.call('HGET', KEYS[1] .. 'wd:' .. K, holder) or '', '^([^ ]+ [^ ]+) .* ([^ ]+)$')
  if same == ttl .. ' ' .. permits and ends - now >= waitMs * ${FRESH_PLACE} then return end
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

export async function acquireLease(server: Server, shard: number, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
  const args = [word(name), word(holder), ttlMs, permits, word(instance), server.time.floor(floor), waitMs]
  const [at, acquired, answer] = await server.write(ACQUIRE, shard, args)
  const now = Number(at)
  server.time.heard(now)
  if (Number(acquired) !== 1) return { acquired: false, until: Number(answer), now }
  return { acquired: true, lease: toLease(shard, name, String(answer)), now }
}

/**
 * The highest floor of all who ask; then stretches of those who ask for the same: as one text how many they are, for how
 * long, when the text may go, for whom, of how many permits, how long they wait; then each name and holder. Answers lines:
 * the time, and for each the token of a free lock that was taken; `+` and the lease that was his already; `-` and when it
 * runs out for a lock that is held; nothing when there is more to it.
 *
 * Without a function of its own, because making one costs as much as calling the server, and with as little arithmetic
 * as can be: numbers of the same length are compared as texts. A whole number is written by `%d` in a third of the time that
 * Lua takes to write it by itself.
 */
const TAKE = bareScript(`
local call, match, format = redis.call, string.match, string.format
local now = string.sub(stamp, 1, -4)
local answers = now
local floor, at, left = ARGV[1], 2, 0
local isNew = #floor < #stamp or (#floor == #stamp and floor <= stamp)
local ttl, keep, inst, more
while at <= #ARGV do
  if left == 0 then
    left, ttl, keep, inst, more = match(ARGV[at], '^(%d+) (%d+) (%d+) ([^ ]+) (.+)')
    left, at = tonumber(left), at + 1
  end
  local name, holder, answer = ARGV[at], ARGV[at + 1], ''
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  local token
  if isNew and (not text or (#text == #stamp + 2 and string.byte(text, #stamp + 1) == 32 and text < stamp)) then
    token = stamp
  else
    local last = not text and '0' or match(text, '^(%d+) %-$')
    token = last and format('%.0f', math.max(last + 1, stamp, floor))
  end
  if token then
    call('SET', key, token .. ' -\\n' .. holder .. ' ' .. token .. ' ' .. now .. ' ' .. format('%d', now + ttl) .. ' 0 ' .. inst .. ' -', 'PX', keep)
    if not text then
      call('ZADD', KEYS[1] .. 'names', 0, name == '%' and '' or
        (string.gsub(name, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)))
    end
    answer = token
  else
    local newest, flags, other, own, acquired, expires, released, by =
      match(text, '^(%d+) (w?%-)\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) %-$')
    if other == holder and released == '0' then
      local line = holder .. ' ' .. own .. ' ' .. acquired .. ' ' .. format('%d', now + ttl) .. ' 0 ' .. by .. ' -'
      if flags == '-' then call('SET', key, newest .. ' -\\n' .. line, 'PX', keep)
      else call('SET', key, newest .. ' w-\\n' .. line) end
      answer = '+' .. line
    elseif other and other ~= holder and string.sub(more, 1, 2) == '1 ' and tonumber(expires) > tonumber(now) then
      -- Asking again keeps the place and, when much of its time is over, prolongs it.
      local places, waitMs = KEYS[1] .. 'wd:' .. name, string.sub(more, 3)
      if waitMs == '0' then answer = '-' .. expires
      else
        local terms, ends = match(call('HGET', places, holder) or '', '^([^ ]+ [^ ]+) .* ([^ ]+)$')
        if terms then
          if terms ~= ttl .. ' 1' or ends - now < waitMs * ${FRESH_PLACE} then
            call('HSET', places, holder, ttl .. ' 1 ' .. inst .. ' ' .. floor .. ' ' .. format('%d', now + waitMs))
          end
          answer = '-' .. expires
        end
      end
    end
  end
  answers = answers .. '\\n' .. answer
  left, at = left - 1, at + 2
end
return answers`)

/** What is asked for, with its name, its holder and his instance as words. */
export interface Asked {
  readonly name: string
  readonly holder: string
  readonly instance: string
  readonly request: AcquireRequest
}

/** Asks for many at once, and makes of each line of the answer what it means to the one who asked. */
export async function takeFree<Result>(
  server: Server,
  shard: number,
  asked: readonly Asked[],
  meaning: (asked: Asked, text: string, now: number) => Result,
): Promise<Result[]> {
  let seen = 0
  for (const { request } of asked) seen = Math.max(seen, request.floor)
  const args: (string | number)[] = [server.time.floor(seen)]
  let [same, at, count]: [Asked | undefined, number, number] = [undefined, 0, 0]
  for (const each of asked) {
    if (same === undefined || !asksAlike(same, each)) {
      if (same !== undefined) args[at] = termsOf(server, same, count)
      same = each
      at = args.push('') - 1
      count = 0
    }
    count += 1
    args.push(each.name, each.holder)
  }
  if (same !== undefined) args[at] = termsOf(server, same, count)
  const lines = String(await server.change(TAKE, shard, args)).split('\n')
  const now = Number(lines[0])
  server.time.heard(now)
  return asked.map((each, line) => meaning(each, lines[line + 1] ?? '', now))
}

/** The same for one alone. */
export async function takeOne<Result>(
  server: Server,
  shard: number,
  asked: Asked,
  meaning: (asked: Asked, text: string, now: number) => Result | Promise<Result>,
): Promise<Result> {
  const args = [server.time.floor(asked.request.floor), termsOf(server, asked, 1), asked.name, asked.holder]
  const text = String(await server.change(TAKE, shard, args))
  const end = text.indexOf('\n')
  const now = Number(text.slice(0, end))
  server.time.heard(now)
  return meaning(asked, text.slice(end + 1), now)
}

/** One text for a stretch: to both sides, an argument more costs as much as reading it out of this one. */
function termsOf(server: Server, { request, instance }: Asked, count: number): string {
  const { ttlMs, permits, waitMs = 0 } = request
  return `${count} ${Math.round(ttlMs)} ${server.keepMs(ttlMs)} ${instance} ${permits} ${Math.round(waitMs)}`
}

function asksAlike(one: Asked, other: Asked): boolean {
  return (
    one.request.ttlMs === other.request.ttlMs &&
    one.request.permits === other.request.permits &&
    one.request.waitMs === other.request.waitMs &&
    one.instance === other.instance
  )
}
