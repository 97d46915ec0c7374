/**
 * Locks that are taken and given back, many by one script. What most of them meet is decided there, with two commands
 * each: a name that nobody holds or waits for, one that is held, or one's own; and when it is given back, that nobody
 * waits. Whatever has more to it is done by itself, by `acquire.ts` and `release.ts`.
 */
import type { AcquireRequest, AcquireResult, ReleaseRequest } from '../../core/lease.js'
import { acquireLease } from './acquire.js'
import { listOf, type Reply, type Server } from './connection.js'
import { toLease } from './lease-text.js'
import { releaseLease } from './release.js'
import { script } from './script.js'
import { shardOf } from './shards.js'
import { SharedCalls } from './shared-calls.js'
import { word } from './token-text.js'
import { WAKE_LEASES } from './wakes.js'

/** How many scripts may be under way: while one is carried out, the next is put together. */
const AT_ONCE = 2

/**
 * Three arguments each: the name, the holder, and what he asks for; nothing means that he gives it back. Answers the time,
 * and for each: the token of a free lock that was taken; `+` and the lease that was his already; `-` and when it runs out
 * for a lock that is held; 1 for one that was given back; 0 when there is more to it.
 */
const LOCKS = script(`
local call, match, format = redis.call, string.match, string.format
local terms = {}

-- Many ask for the same.
local function termsOf(text)
  local t = terms[text]
  if not t then
    local ttl, permits, inst, floor, waitMs = match(text, '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)$')
    local ttlMs = tonumber(ttl)
    t = { ttl = ttl, permits = permits, inst = inst, floor = tonumber(floor), floorText = floor, waitMs = tonumber(waitMs),
      times = ' ' .. nowText .. ' ' .. int(now + ttlMs) .. ' 0 ' .. inst .. ' -', ends = int(now + ttlMs),
      keep = int(housekeeping(ttlMs)) }
    terms[text] = t
  end
  return t
end

local function take(name, holder, t)
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  local last = not text and '0' or match(text, '^(%d+) %-$')
  if last then
    if not text then call('ZADD', KEYS[1] .. 'names', 0, unescape(name)) end
    local token = format('%.0f', math.max(last + 1, nowUs, t.floor))
    call('SET', key, token .. ' -\\n' .. holder .. ' ' .. token .. t.times, 'PX', t.keep)
    return token
  end
  local newest, flags, other, token, acquired, expires, released, by =
    match(text, '^(%d+) (w?%-)\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) %-$')
  if not other then return '0' end
  if other == holder and released == '0' then
    local line = holder .. ' ' .. token .. ' ' .. acquired .. ' ' .. t.ends .. ' 0 ' .. by .. ' -'
    if flags == '-' then call('SET', key, newest .. ' -\\n' .. line, 'PX', t.keep)
    else call('SET', key, newest .. ' w-\\n' .. line) end
    return '+' .. line
  end
  if t.permits ~= '1' or tonumber(expires) <= now or other == holder then return '0' end
  if t.waitMs > 0 then
    -- Asking again keeps the place and prolongs it.
    local places = KEYS[1] .. 'wd:' .. name
    if call('HEXISTS', places, holder) == 0 then return '0' end
    call('HSET', places, holder, t.ttl .. ' ' .. t.permits .. ' ' .. t.inst .. ' ' .. t.floorText .. ' ' .. int(now + t.waitMs))
  end
  return '-' .. expires
end

local function giveBack(name, holder)
  local key = KEYS[1] .. 'n:' .. name
  local last, held = match(call('GET', key) or '', '^(%d+) %-\\n([^ ]+) %d+ %d+ %d+ 0 [^ ]+ %-$')
  if held ~= holder then return '0' end
  call('SET', key, last .. ' -', 'PX', 86400000)
  return '1'
end

local answers = { nowText }
for at = 1, #ARGV, 3 do
  local asked = ARGV[at + 2]
  answers[#answers + 1] = asked == '' and giveBack(ARGV[at], ARGV[at + 1]) or take(ARGV[at], ARGV[at + 1], termsOf(asked))
end
return answers`)

type Asked = readonly [name: string, holder: string, terms: string]

interface Answer {
  readonly now: number
  readonly text: string
}

export class LockCalls {
  readonly #server: Server
  readonly #calls: SharedCalls<Asked, Answer>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { name, holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    const by = word(instance)
    const terms = `${ttlMs} ${permits} ${by} ${floor} ${waitMs}`
    const { now, text } = await this.#ask(shard, [word(name), word(holder), terms])
    if (text === '0') return acquireLease(this.#server, shard, request)
    if (text.startsWith('-')) return { acquired: false, until: Number(text.slice(1)), now }
    if (text.startsWith('+')) return { acquired: true, lease: toLease(shard, name, text.slice(1)), now }
    const lease = { name, holder, token: Number(text), acquiredAt: now, expiresAt: now + ttlMs }
    return { acquired: true, lease: instance === undefined ? lease : { ...lease, instance }, now }
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    const { name, holder, minHoldMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    if (minHoldMs === 0 && (await this.#ask(shard, [word(name), word(holder), ''])).text === '1') {
      this.#server.announce(WAKE_LEASES)
      return true
    }
    return releaseLease(this.#server, shard, request)
  }

  #ask(shard: number, asked: Asked): Promise<Answer> {
    this.#calls[shard] ??= new SharedCalls((all) => this.#send(shard, all), AT_ONCE)
    return this.#calls[shard].call(asked)
  }

  async #send(shard: number, asked: readonly Asked[]): Promise<Answer[]> {
    const [at, ...answers]: readonly Reply[] = listOf(await this.#server.change(LOCKS, shard, asked.flat()))
    const now = Number(at)
    return answers.map((text) => ({ now, text: String(text) }))
  }
}
