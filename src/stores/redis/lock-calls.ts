/**
 * Locks that are taken and given back, many by one script. What most of them meet is decided there, with two commands
 * each: a name that nobody holds or waits for, one that is held, or one's own; and when it is given back, that nobody
 * waits. Whatever has more to it is done by itself, by `acquire.ts` and `release.ts`.
 */
import type { AcquireRequest, AcquireResult, ReleaseRequest } from '../../core/lease.js'
import { acquireLease } from './acquire.js'
import { listOf, type Server } from './connection.js'
import { toLease } from './lease-text.js'
import { releaseLease } from './release.js'
import { bareScript, timelessScript } from './script.js'
import { shardOf } from './shards.js'
import { SharedCalls } from './shared-calls.js'
import { word } from './token-text.js'
import { WAKE_LEASES } from './wakes.js'

/** While one script is carried out, the next is put together. */
const SHARING = { most: 25, atOnce: 2 }

/**
 * Three arguments each: the name, the holder, and what he asks for. Answers the time, and for each: the token of a free
 * lock that was taken; `+` and the lease that was his already; `-` and when it runs out for a lock that is held; nothing
 * when there is more to it. Without a function of its own, because making one costs as much as calling the server.
 */
const TAKE = bareScript(`
local call, match, format = redis.call, string.match, string.format
local now = math.floor(nowUs / 1000)
local answers = { format('%.0f', now) }
local terms, ttl, permits, inst, floor, waitMs, ends, keep
for at = 1, #ARGV, 3 do
  local name, holder, answer = ARGV[at], ARGV[at + 1], ''
  -- Many ask for the same.
  if ARGV[at + 2] ~= terms then
    terms = ARGV[at + 2]
    ttl, permits, inst, floor, waitMs = match(terms, '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)$')
    ends, keep = format('%.0f', now + ttl), format('%.0f', housekeeping(ttl))
  end
  local key = KEYS[1] .. 'n:' .. name
  local text = call('GET', key)
  local last = not text and '0' or match(text, '^(%d+) %-$')
  if last then
    local token = format('%.0f', math.max(last + 1, nowUs, floor))
    call('SET', key, token .. ' -\\n' .. holder .. ' ' .. token .. ' ' .. answers[1] .. ' ' .. ends .. ' 0 ' .. inst .. ' -', 'PX', keep)
    if not text then
      call('ZADD', KEYS[1] .. 'names', 0, name == '%' and '' or
        (string.gsub(name, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)))
    end
    answer = token
  else
    local newest, flags, other, token, acquired, expires, released, by =
      match(text, '^(%d+) (w?%-)\\n([^ ]+) (%d+) (%d+) (%d+) (%d) ([^ ]+) %-$')
    if other == holder and released == '0' then
      local line = holder .. ' ' .. token .. ' ' .. acquired .. ' ' .. ends .. ' 0 ' .. by .. ' -'
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
  answers[#answers + 1] = answer
end
return answers`)

/** Two arguments each: the name and the holder. Answers for each whether it was given back; if not, there is more to it. */
const GIVE_BACK = timelessScript(`
local answers = {}
for at = 1, #ARGV, 2 do
  local key = KEYS[1] .. 'n:' .. ARGV[at]
  local last, holder = string.match(redis.call('GET', key) or '', '^(%d+) %-\\n([^ ]+) %d+ %d+ %d+ 0 [^ ]+ %-$')
  if holder == ARGV[at + 1] then
    redis.call('SET', key, last .. ' -', 'PX', '86400000')
    answers[#answers + 1] = 1
  else answers[#answers + 1] = 0 end
end
return answers`)

type Asked = readonly [name: string, holder: string, terms: string]
type Given = readonly [name: string, holder: string]

interface Answer {
  readonly now: number
  readonly text: string
}

export class LockCalls {
  readonly #server: Server
  readonly #takes: SharedCalls<Asked, Answer>[] = []
  readonly #returns: SharedCalls<Given, boolean>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { name, holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    this.#takes[shard] ??= new SharedCalls((asked) => this.#take(shard, asked), SHARING)
    const terms = `${ttlMs} ${permits} ${word(instance)} ${floor} ${waitMs}`
    const { now, text } = await this.#takes[shard].call([word(name), word(holder), terms])
    if (text === '') return acquireLease(this.#server, shard, request)
    if (text.startsWith('-')) return { acquired: false, until: Number(text.slice(1)), now }
    if (text.startsWith('+')) return { acquired: true, lease: toLease(shard, name, text.slice(1)), now }
    const lease = { name, holder, token: Number(text), acquiredAt: now, expiresAt: now + ttlMs }
    return { acquired: true, lease: instance === undefined ? lease : { ...lease, instance }, now }
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    const { name, holder, minHoldMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    this.#returns[shard] ??= new SharedCalls((given) => this.#giveBack(shard, given), SHARING)
    const isBack = minHoldMs === 0 && (await this.#returns[shard].call([word(name), word(holder)]))
    return isBack || releaseLease(this.#server, shard, request)
  }

  async #take(shard: number, asked: readonly Asked[]): Promise<Answer[]> {
    const [at, ...answers] = listOf(await this.#server.change(TAKE, shard, asked.flat()))
    const now = Number(at)
    return answers.map((text) => ({ now, text: String(text) }))
  }

  async #giveBack(shard: number, given: readonly Given[]): Promise<boolean[]> {
    const results = listOf(await this.#server.change(GIVE_BACK, shard, given.flat())).map((result) => result === 1)
    if (results.includes(true)) this.#server.announce(WAKE_LEASES)
    return results
  }
}
