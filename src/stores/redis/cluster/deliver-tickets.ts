/** What runs and their tickets in other shards have to tell each other: see `tickets.ts`. Each step is safe to repeat. */

import { runScript } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { runId } from '../runs/run-codec.js'
import { KEY_WINNER } from './key-winner.js'
import { inShards } from './shards.js'

const OUT = runScript(`
-- What was sent long ago and is still not claimed is sent again: its ticket may be lost.
for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'sent', '-inf', now - 30000, 'LIMIT', 0, 200)) do
  redis.call('ZREM', KEYS[1] .. 'sent', n)
  redis.call('ZADD', KEYS[1] .. 'out', now, n)
end
local found = {}
for _, n in ipairs(redis.call('ZRANGE', KEYS[1] .. 'out', 0, 499)) do
  local r = load(n)
  if r and (r.st == 'R' or r.st == 'W') and fixed(r).remote then
    found[#found + 1] = r.remote .. ' ' .. n .. ' ' .. r.attempt .. ' ' .. r.readyAt .. ' ' .. r.startBy .. ' ' .. r.prio ..
      ' ' .. r.target .. ' ' .. r.remoteKey .. ' ' .. r.limit .. ' ' .. r.busy .. ' ' .. r.st ..
      redis.call('SISMEMBER', KEYS[1] .. 'checked', n)
  else redis.call('ZREM', KEYS[1] .. 'out', n) end
end
local told, reasons = {}, redis.call('HGETALL', KEYS[1] .. 'notices')
for at = 1, #reasons, 2 do told[#told + 1] = reasons[at] .. ' ' .. reasons[at + 1] end
local drops, gone = {}, redis.call('HGETALL', KEYS[1] .. 'drop')
for at = 1, #gone, 2 do drops[#drops + 1] = gone[at + 1] .. ' ' .. gone[at] end
return { found, told, drops }`)

/** Answers for each 1: it is there; 0: not yet; or who has the key that it was to have if it was free. */
const TICKET = runScript(`${KEY_WINNER}
local results = {}
for at = 1, #ARGV do
  local n, attempt, readyAt, startBy, prio, target, key, limit, busy, st, check =
    string.match(ARGV[at], '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) (%a)(%d)$')
  local known = load(n)
  local winner = not known and check == '1' and keyWinner({ key = key, limit = limit }, tonumber(readyAt))
  if known and known.st == 'W' and known.wait == 'o' and st == 'R' then makeReady(known)
  elseif not known and not winner then
    local made = 'k ' .. prio .. ' n ' .. target .. ' - - ' .. key .. ' ' .. limit .. ' ' .. busy .. ' 0 - 0'
    local r = parse(n, newText(readyAt, startBy, '-', 'xn', '\\n' .. made .. '\\n\\n\\n\\nnull'))
    r.attempt, r.new = attempt, true
    change(r)
    if st == 'W' then makeWait(r, 'o') else makeReady(r) end
  end
  if st == 'W' and not winner then redis.call('ZADD', KEYS[1] .. 'held', now, n) end
  -- One of an earlier attempt that is not over has to be over first.
  results[at] = winner or (known and known.st == 'X' and 0 or 1)
end
finish()
return { results, wakes }`)

const SENT = runScript(`
for at = 1, #ARGV, 2 do
  local n = ARGV[at]
  redis.call('SREM', KEYS[1] .. 'checked', n)
  -- One that was waiting when its ticket was sent, and is ready now, has to be sent again.
  local r = load(n)
  if r and r.st == ARGV[at + 1] and redis.call('ZREM', KEYS[1] .. 'out', n) == 1 then redis.call('ZADD', KEYS[1] .. 'sent', now, n) end
end
return { 0 }`)

/** Whoever enqueued it asks right away what became of it. */
const REFUSE = runScript(`
for at = 1, #ARGV, 2 do
  local n = ARGV[at]
  local r = redis.call('SISMEMBER', KEYS[1] .. 'checked', n) == 1 and load(n)
  if r then
    redis.call('SET', KEYS[1] .. 'refused:' .. n, ARGV[at + 1], 'PX', 60000)
    forgetDedupe(r)
    unrecord(r)
  end
end
finish()
return { wakes }`)

/** A ticket that was claimed for a run which is gone holds its key for nothing, whether its claimer finds out or died. */
const DROP = runScript(`
for at = 1, #ARGV, 2 do
  local r, attempt = load(ARGV[at]), ARGV[at + 1]
  if r and r.st == 'X' and r.wait == 'u' then attempt = int(attempt + 1) end
  if r and (r.st ~= 'X' or r.wait == 'u') and r.attempt == attempt then endRun(r, 'C') end
end
finish()
return { wakes }`)

const DROPPED = runScript(`
for at = 1, #ARGV do redis.call('HDEL', KEYS[1] .. 'drop', ARGV[at]) end
return { 0 }`)

const TELL = runScript(`
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  if r and r.st == 'R' and fixed(r).remote then endRun(r, 'K', ARGV[at + 1]) end
end
finish()
return { wakes }`)

const TOLD = runScript(`
for at = 1, #ARGV do redis.call('HDEL', KEYS[1] .. 'notices', ARGV[at]) end
return { 0 }`)

/** Sends the tickets of a shard's runs, and tells runs of other shards what became of theirs. */
export async function deliverTickets(server: Server, shard: number): Promise<void> {
  const [found, told, drops] = (await server.read(OUT, shard)) as readonly (readonly string[])[]
  await inShards(textsOf(drops), remoteShard, async (home, own) => {
    const words = own.map((line) => line.split(' '))
    await server.write(
      DROP,
      home,
      words.flatMap(([, attempt = '', number = '']) => [`${number}t${shard}`, attempt]),
    )
    await server.write(
      DROPPED,
      shard,
      words.map(([, , number = '']) => number),
    )
    return []
  })
  await inShards(textsOf(found), remoteShard, async (home, own) => {
    const numbers = own.map((line) => line.split(' ')[1] ?? '')
    const tickets = own.map((line, at) => `${numbers[at]}t${shard} ${line.split(' ').slice(2).join(' ')}`)
    const results = textsOf((await server.write(TICKET, home, tickets))[0])
    const states = own.map((line) => line.at(-2) ?? '')
    const sent = numbers.flatMap((number, at) => (results[at] === '1' ? [number, states[at] ?? ''] : []))
    if (sent.length > 0) await server.write(SENT, shard, sent)
    const refused = numbers.flatMap((number, at) => (isWinner(results[at]) ? [number, runId(home, results[at])] : []))
    if (refused.length > 0) await server.write(REFUSE, shard, refused)
    return []
  })
  await inShards(textsOf(told), runShard, async (home, own) => {
    await server.write(
      TELL,
      home,
      own.flatMap((line) => [line.slice(0, 16), line.split(' ')[1] ?? '']),
    )
    await server.write(
      TOLD,
      shard,
      own.map((line) => line.split(' ')[0] ?? ''),
    )
    return []
  })
}

/** A ticket that was refused is answered with the number of the run that has the key. */
function isWinner(result: string | undefined): result is string {
  return result !== undefined && result.length > 1
}

function remoteShard(line: string): number {
  return Number(line.split(' ')[0])
}

/** The shard of the run that a ticket stands for. */
function runShard(ticket: string): number {
  return Number(/t(\d+)/.exec(ticket)?.[1])
}
