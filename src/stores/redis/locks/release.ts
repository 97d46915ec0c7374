/** Giving a lock back, and handing it to the next in line. `leases.ts` says how locks work. */
import type { ReleaseRequest } from '../../../core/lease.js'
import { clockedScript, runScript } from '../connection/script.js'
import type { Server } from '../connection/server.js'
import { WAKE_LEASES } from '../connection/wakes.js'
import { word } from '../schema/words.js'

const RELEASE = runScript(`
local K, holder, minHold = ARGV[1], ARGV[2], tonumber(ARGV[3])
local m = name(K)
local h = holderOf(m, holder)
local held = h ~= nil and h.run == '-' and h.released == '0'
local waited = m.waits and dropWaiter(m, holder) == 1
if held then
  if h.acquired + minHold <= now then removeHolder(m, h)
  else
    h.released, h.expires = '1', h.acquired + minHold
    changeName(m)
  end
end
touch(touchedNames, K)
finish()
return { (held or waited) and 1 or 0, wakes }`)

export async function releaseLease(
  server: Server,
  shard: number,
  { name, holder, minHoldMs = 0 }: ReleaseRequest,
): Promise<boolean> {
  const [released] = await server.write(RELEASE, shard, [word(name), word(holder), minHoldMs])
  return Number(released) === 1
}

/**
 * Two arguments each: the name, and the text that was there when its holder took it, or only the holder where that is not
 * known. Most find the very same text, and do not even need to know the time: its first line is what is left of it. Where
 * locks wait in line, the next one is handed the lock and told so; that the line may be empty then is for the next who
 * comes to see. Where nobody waits, nobody is told. Answers a bit for each, the first one highest: 1 for what was given back,
 * 0 when there is more to it.
 */
const GIVE_BACK = clockedScript(
  (time) => `
local call, match = redis.call, string.match
local given = 0
for at = 1, #ARGV, 2 do
  local name, taken, bit = ARGV[at], ARGV[at + 1], 0
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  if text and text == taken then
    call('SET', key, match(text, '^[^\\n]+'), 'PX', '86400000')
    bit = 1
  else
    local own = match(taken, '\\n([^ ]+)') or taken
    local last, flags, holder = match(text or '', '^(%d+) (w?%-)\\n([^ ]+) %d+ %d+ %d+ 0 [^ ]+ %-$')
    if holder == own and flags == '-' then
      call('SET', key, last .. ' -', 'PX', '86400000')
      bit = 1
    elseif holder == own then
      ${time}
      local line, places = KEYS[1] .. 'ww:' .. name, KEYS[1] .. 'wd:' .. name
      local next = call('ZRANGE', line, 0, 0)[1]
      local ttl, permits, inst, floor, ends = match(next and call('HGET', places, next) or '', '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)')
      local now = math.floor(nowUs / 1000)
      if permits == '1' and tonumber(ends) > now then
        local token = string.format('%.0f', math.max(last + 1, nowUs, floor))
        -- Until its place would have expired: asking again makes it last its time.
        local expires = math.min(now + ttl, tonumber(ends))
        call('ZREM', line, next)
        call('HDEL', places, next)
        call('SET', key, string.format('%s w-\\n%s %s %.0f %.0f 0 %s -', token, next, token, now, expires, inst))
        call('PUBLISH', match(KEYS[1], '^(.*){') .. 'wakes', '- ${WAKE_LEASES} ' .. next)
        bit = 1
      end
    end
  end
  given = given * 2 + bit
end
return given`,
)

/** What is given back, with its name and its holder as words. */
export interface Given {
  readonly name: string
  readonly holder: string
  readonly taken: Taken | undefined
  readonly request: ReleaseRequest
}

/** What stood there when a lock was taken. */
export interface Taken {
  readonly name: string
  readonly text: string
}

/** Gives many back at once. Where there is more to one of them, it is done by itself. */
export async function giveBack(
  server: Server,
  shard: number,
  given: readonly Given[],
  byItself: (given: Given) => Promise<boolean>,
): Promise<(boolean | Promise<boolean>)[]> {
  const args: string[] = []
  for (const { name, holder, taken } of given) args.push(name, taken?.text ?? holder)
  const bits = Number(await server.change(GIVE_BACK, shard, args))
  return given.map((each, at) => ((bits >> (given.length - 1 - at)) & 1) === 1 || byItself(each))
}

/** The same for one alone. */
export async function giveOneBack(
  server: Server,
  shard: number,
  given: Given,
  byItself: (given: Given) => Promise<boolean>,
): Promise<boolean> {
  const { name, holder, taken } = given
  return Number(await server.change(GIVE_BACK, shard, [name, taken?.text ?? holder])) === 1 || byItself(given)
}
