/**
 * Locks that are taken and given back, many by one script. What most of them meet is decided there, with two commands
 * each: a name that nobody holds or waits for, one that is held, or one's own; and when it is given back, that nobody
 * waits. Whatever has more to it is done by itself, by `acquire.ts` and `release.ts`.
 */
import type { AcquireRequest, AcquireResult, ReleaseRequest } from '../../core/lease.js'
import { acquireLease } from './acquire.js'
import type { Server } from './connection.js'
import { toLease } from './lease-text.js'
import { releaseLease } from './release.js'
import { bareScript, clockedScript } from './script.js'
import { shardOf } from './shards.js'
import { SharedCalls } from './shared-calls.js'
import { word } from './token-text.js'
import { WAKE_LEASES } from './wakes.js'

/** While one script is carried out, the next is put together. */
const SHARING = { most: 25, atOnce: 2 }

/**
 * The highest floor of all who ask; then stretches of those who ask for the same: how many they are, for how long, of how
 * many permits, for whom, how long they wait, when the text may go; then each name and holder. Answers lines: the time, and for each the
 * token of a free lock that was taken; `+` and the lease that was his already; `-` and when it runs out for a lock that
 * is held; nothing when there is more to it.
 *
 * Without a function of its own, because making one costs as much as calling the server, and with as little arithmetic
 * as can be: numbers of the same length are compared as texts.
 */
const TAKE = bareScript(`
local call, match, format = redis.call, string.match, string.format
local now = math.floor(nowUs / 1000)
local nowText, nextToken = format('%.0f', now), format('%.0f', nowUs)
local answers = nowText
local floor, at, left = ARGV[1], 2, 0
local isNew = #floor < #nextToken or (#floor == #nextToken and floor <= nextToken)
local ttl, permits, inst, waitMs, keep, ends
while at <= #ARGV do
  if left == 0 then
    left, ttl, permits, inst, waitMs, keep = tonumber(ARGV[at]), unpack(ARGV, at + 1, at + 5)
    ends, at = format('%.0f', now + ttl), at + 6
  end
  local name, holder, answer = ARGV[at], ARGV[at + 1], ''
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  local token
  if isNew and (not text or (#text == #nextToken + 2 and text < nextToken)) then token = nextToken
  else
    local last = not text and '0' or match(text, '^(%d+) %-$')
    token = last and format('%.0f', math.max(last + 1, nowUs, floor))
  end
  if token then
    call('SET', key, token .. ' -\\n' .. holder .. ' ' .. token .. ' ' .. nowText .. ' ' .. ends .. ' 0 ' .. inst .. ' -', 'PX', keep)
    if not text then
      call('ZADD', KEYS[1] .. 'names', 0, name == '%' and '' or
        (string.gsub(name, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)))
    end
    answer = token
  else
    local newest, flags, other, own, acquired, expires, released, by =
      match(text, '^(%d+) (w?%-)\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) %-$')
    if other == holder and released == '0' then
      local line = holder .. ' ' .. own .. ' ' .. acquired .. ' ' .. ends .. ' 0 ' .. by .. ' -'
      if flags == '-' then call('SET', key, newest .. ' -\\n' .. line, 'PX', keep)
      else call('SET', key, newest .. ' w-\\n' .. line) end
      answer = '+' .. line
    elseif other and other ~= holder and permits == '1' and tonumber(expires) > now then
      -- Asking again keeps the place and prolongs it.
      local places = KEYS[1] .. 'wd:' .. name
      if waitMs == '0' then answer = '-' .. expires
      elseif call('HEXISTS', places, holder) == 1 then
        call('HSET', places, holder, ttl .. ' ' .. permits .. ' ' .. inst .. ' ' .. floor .. ' ' .. format('%.0f', now + waitMs))
        answer = '-' .. expires
      end
    end
  end
  answers = answers .. '\\n' .. answer
  left, at = left - 1, at + 2
end
return answers`)

/**
 * Four arguments each: the name, the holder, the text that was there when he took it, and the text to leave. Most find
 * the very same text, and do not even need to know the time. Where locks wait in line, the next one is handed the lock
 * and told so; that the line may be empty then is for the next who comes to see. Answers 1 for each that was given back,
 * 2 for each that was handed on, and 0 when there is more to it.
 */
const GIVE_BACK = clockedScript(
  (time) => `
local call, match = redis.call, string.match
local answers = ''
for at = 1, #ARGV, 4 do
  local name, answer = ARGV[at], '0'
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  if text and text == ARGV[at + 2] then
    call('SET', key, ARGV[at + 3], 'PX', '86400000')
    answer = '1'
  else
    local last, flags, holder = match(text or '', '^(%d+) (w?%-)\\n([^ ]+) %d+ %d+ %d+ 0 [^ ]+ %-$')
    if holder == ARGV[at + 1] and flags == '-' then
      call('SET', key, last .. ' -', 'PX', '86400000')
      answer = '1'
    elseif holder == ARGV[at + 1] then
      ${time}
      local line, places = KEYS[1] .. 'ww:' .. name, KEYS[1] .. 'wd:' .. name
      local next = call('ZRANGE', line, 0, 0)[1]
      local ttl, permits, inst, floor, ends = match(next and call('HGET', places, next) or '', '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)')
      local now = math.floor(nowUs / 1000)
      if permits == '1' and tonumber(ends) > now then
        local token = string.format('%.0f', math.max(last + 1, nowUs, floor))
        call('ZREM', line, next)
        call('HDEL', places, next)
        call('SET', key, string.format('%s w-\\n%s %s %.0f %.0f 0 %s -', token, next, token, now, now + ttl, inst))
        call('PUBLISH', match(KEYS[1], '^(.*){') .. 'wakes', '- ${WAKE_LEASES} ' .. next)
        answer = '2'
      end
    end
  end
  answers = answers .. answer
end
return answers`,
)

interface Asked {
  readonly name: string
  readonly holder: string
  readonly request: AcquireRequest
}

interface Answer {
  readonly now: number
  readonly text: string
}

interface Given {
  readonly name: string
  readonly holder: string
  /** What stood there when it was taken, and what is left behind; nothing if that is not known. */
  readonly taken: string
  readonly left: string
}

/** Of how many locks is remembered what stood there when they were taken. */
const REMEMBERED = 10_000

export class LockCalls {
  readonly #server: Server
  readonly #takes: SharedCalls<Asked, Answer>[] = []
  readonly #returns: SharedCalls<Given, boolean>[] = []
  readonly #taken = new Map<string, readonly [taken: string, left: string]>()

  constructor(server: Server) {
    this.#server = server
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { name, holder, ttlMs, instance } = request
    const shard = shardOf(name, this.#server.shards)
    const [wanted, by, inst] = [word(name), word(holder), word(instance)]
    this.#takes[shard] ??= new SharedCalls((asked) => this.#take(shard, asked), SHARING)
    const { now, text } = await this.#takes[shard].call({ name: wanted, holder: by, request })
    if (text === '') return acquireLease(this.#server, shard, request)
    if (text.startsWith('-')) return { acquired: false, until: Number(text.slice(1)), now }
    if (text.startsWith('+')) return { acquired: true, lease: toLease(shard, name, text.slice(1)), now }
    const expiresAt = Math.round(now + ttlMs)
    this.#remember(`${wanted} ${by}`, `${text} -`, `${by} ${text} ${now} ${expiresAt} 0 ${inst} -`)
    const lease = { name, holder, token: Number(text), acquiredAt: now, expiresAt }
    return { acquired: true, lease: instance === undefined ? lease : { ...lease, instance }, now }
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    const { name, holder, minHoldMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    const [wanted, by] = [word(name), word(holder)]
    const place = `${wanted} ${by}`
    const [taken, left] = this.#taken.get(place) ?? NOTHING
    this.#taken.delete(place)
    if (minHoldMs > 0) return releaseLease(this.#server, shard, request)
    this.#returns[shard] ??= new SharedCalls((given) => this.#giveBack(shard, given), SHARING)
    const isBack = await this.#returns[shard].call({ name: wanted, holder: by, taken, left })
    return isBack || releaseLease(this.#server, shard, request)
  }

  #remember(place: string, left: string, line: string): void {
    if (this.#taken.size >= REMEMBERED) this.#taken.clear()
    this.#taken.set(place, [`${left}\n${line}`, left])
  }

  async #take(shard: number, asked: readonly Asked[]): Promise<Answer[]> {
    const args: (string | number)[] = [asked.reduce((highest, { request }) => Math.max(highest, request.floor), 0)]
    let [same, countAt] = [asked[0]?.request, 0]
    for (const [at, { name, holder, request }] of asked.entries()) {
      if (at === 0 || same === undefined || !asksAlike(same, request)) {
        same = request
        countAt = args.length
        const { ttlMs, permits, instance, waitMs = 0 } = request
        args.push(0, ttlMs, permits, word(instance), waitMs, this.#server.keepMs(ttlMs))
      }
      args[countAt] = Number(args[countAt]) + 1
      args.push(name, holder)
    }
    const lines = String(await this.#server.change(TAKE, shard, args)).split('\n')
    const now = Number(lines[0])
    return asked.map((_, at) => ({ now, text: lines[at + 1] ?? '' }))
  }

  async #giveBack(shard: number, given: readonly Given[]): Promise<boolean[]> {
    const args: string[] = []
    for (const { name, holder, taken, left } of given) args.push(name, holder, taken, left)
    const letters = String(await this.#server.change(GIVE_BACK, shard, args))
    if (letters.includes('1')) this.#server.announce(WAKE_LEASES)
    return given.map((_, at) => letters[at] !== '0')
  }
}

function asksAlike(one: AcquireRequest, other: AcquireRequest): boolean {
  return (
    one.ttlMs === other.ttlMs &&
    one.permits === other.permits &&
    one.instance === other.instance &&
    one.waitMs === other.waitMs
  )
}

const NOTHING = ['', ''] as const
