/**
 * Keys of other shards. A run is in the shard of its schedule, its key in the shard of the key's name, and no script sees
 * both. So a ticket stands for the run in the key's shard: it queues, waits in line, is claimed and holds the key there,
 * like any run with a key. Whoever has claimed the ticket starts the run in its own shard, with the ticket's token.
 *
 * - Ticket not sent, or lost on the way: the run stands in `out` until its ticket is known to be there. Sweeps send what is
 *   left, and send again what has had no answer for long; a ticket that is there already is left as it is.
 * - Ticket claimed, run not started (crash, lost reply): the beat does not list it, or the instance dies: it is given back.
 * - The run has ended, or was taken back, when its ticket is claimed: the ticket is thrown away, and the key is free.
 * - The key is taken from the ticket (lease over, reset): it is claimed anew, with a higher token, and starting the run
 *   with that fences the attempt before it.
 * - Settle asks for the ticket first, settles the run (refused when its lease has run out in its own shard, which it does
 *   before the ticket's), and then frees the key. After a crash in between, the ticket outlives its run until it is claimed.
 */
import type { ClaimedRun, ClaimRequest, Settlement, SettleResult } from '../../core/store.js'
import { type Server, textsOf } from './connection.js'
import { runPlace, ticketOf, toRun } from './run-text.js'
import { runScript } from './script.js'
import { inShards } from './shards.js'
import { word } from './token-text.js'

const OUT = runScript(`
-- What was sent long ago and is still not claimed is sent again: its ticket may be lost.
for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. 'sent', '-inf', now - 30000, 'LIMIT', 0, 200)) do
  redis.call('ZREM', KEYS[1] .. 'sent', n)
  redis.call('ZADD', KEYS[1] .. 'out', now, n)
end
local found = {}
for _, n in ipairs(redis.call('ZRANGE', KEYS[1] .. 'out', 0, 499)) do
  local r = load(n)
  if r and r.st == 'R' and fixed(r).remote then
    found[#found + 1] = r.remote .. ' ' .. n .. ' ' .. r.attempt .. ' ' .. r.readyAt .. ' ' .. r.startBy .. ' ' .. r.prio ..
      ' ' .. r.target .. ' ' .. r.remoteKey .. ' ' .. r.limit .. ' ' .. r.busy
  else redis.call('ZREM', KEYS[1] .. 'out', n) end
end
local told, reasons = {}, redis.call('HGETALL', KEYS[1] .. 'notices')
for at = 1, #reasons, 2 do told[#told + 1] = reasons[at] .. ' ' .. reasons[at + 1] end
return { found, told }`)

const TICKET = runScript(`
local results = {}
for at = 1, #ARGV do
  local n, attempt, readyAt, startBy, prio, target, key, limit, busy =
    string.match(ARGV[at], '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)$')
  local known = load(n)
  if not known then
    local made = 'k ' .. prio .. ' n ' .. target .. ' - - ' .. key .. ' ' .. limit .. ' ' .. busy .. ' 0 - 0'
    local r = parse(n, newText(readyAt, startBy, '-', 'xn', '\\n' .. made .. '\\n\\n\\n\\nnull'))
    r.attempt, r.new = attempt, true
    change(r)
    makeReady(r)
  end
  -- One of an earlier attempt that is not over has to be over first.
  results[at] = known and known.st == 'X' and 0 or 1
end
finish()
return { results, wakes }`)

const SENT = runScript(`
for at = 1, #ARGV do
  if redis.call('ZREM', KEYS[1] .. 'out', ARGV[at]) == 1 then redis.call('ZADD', KEYS[1] .. 'sent', now, ARGV[at]) end
end
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
  const [found, told] = (await server.read(OUT, shard)) as readonly (readonly string[])[]
  await inShards(textsOf(found), remoteShard, async (home, own) => {
    const numbers = own.map((line) => line.split(' ')[1] ?? '')
    const tickets = own.map((line, at) => `${numbers[at]}t${shard} ${line.split(' ').slice(2).join(' ')}`)
    const [results] = await server.write(TICKET, home, tickets)
    const sent = textsOf(results).flatMap((result, at) => (result === '1' ? [numbers[at] ?? ''] : []))
    if (sent.length > 0) await server.write(SENT, shard, sent)
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

function remoteShard(line: string): number {
  return Number(line.split(' ')[0])
}

/** The shard of the run that a ticket stands for. */
function runShard(ticket: string): number {
  return Number(/t(\d+)/.exec(ticket)?.[1])
}

const START = runScript(`
local inst, claim = ARGV[1], ARGV[2]
local expires, dead = string.match(redis.call('GET', KEYS[1] .. 'i:' .. inst) or '', '^(%d+) (%d)')
local alive = dead == '0' and tonumber(expires) > now

local function start(r, token)
  if not alive or not r or (r.st ~= 'R' and r.st ~= 'X') or not fixed(r).remote then return false end
  if r.st == 'X' and r.token == token and r.inst == inst then return true end
  if (tonumber(r.token) or 0) >= tonumber(token) then return false end
  if r.st == 'X' then
    takeOver(r, true)
    if r.st ~= 'R' then return false end
  end
  if tonumber(r.readyAt) > now then return false end
  withdraw(r)
  r.st, r.token, r.startedAt, r.inst, r.claim, r.attempt = 'X', token, nowText, inst, claim, int(r.attempt + 1)
  if r.rescued == '1' then r.takeovers, r.rescued = int(r.takeovers + 1), '0' end
  change(r)
  local running = collect(runningAdded, inst)
  running[#running + 1] = r.n
  running[#running + 1] = claim .. ' ' .. token .. ' ' .. r.cancel
  return true
end

local texts = {}
for at = 3, #ARGV, 2 do
  local r = load(ARGV[at])
  if start(r, ARGV[at + 1]) then
    r.text = textOf(r)
    texts[#texts + 1] = r.text
  else
    -- One that is ready after all needs another ticket.
    if r and r.st == 'R' and r.remote and redis.call('ZREM', KEYS[1] .. 'sent', r.n) == 1 then
      redis.call('ZADD', KEYS[1] .. 'out', now, r.n)
    end
    texts[#texts + 1] = ''
  end
end
finish()
return { texts, wakes }`)

const END = runScript(`
for at = 1, #ARGV do
  local r = load(ARGV[at])
  if r then endRun(r, 'C') end
end
finish()
return { wakes }`)

/** Starts the runs whose tickets were claimed. One that cannot be started gives its key back at once. */
export async function startTickets(
  server: Server,
  shard: number,
  { instance, claim }: ClaimRequest,
  tickets: readonly ClaimedRun[],
): Promise<ClaimedRun[]> {
  const started = await inShards(
    tickets,
    ({ id }) => runPlace(id)?.shard ?? 0,
    async (home, own): Promise<readonly (ClaimedRun | undefined)[]> => {
      const args = own.flatMap(({ id, token }) => [runPlace(id)?.number ?? '-', token])
      const [texts] = await server.write(START, home, [word(instance), claim, ...args])
      return textsOf(texts).map((text, at) => {
        const ticket = own[at]
        if (ticket === undefined || text === '') return undefined
        return { ...toRun(ticket.id, text), token: ticket.token, startedAt: ticket.startedAt }
      })
    },
  )
  const useless = tickets.filter((_, at) => started[at] === undefined)
  const runs = started.filter((run) => run !== undefined)
  for (const { id } of runs) server.tickets.set(id, shard)
  if (useless.length > 0) {
    await server.write(
      END,
      shard,
      useless.map(({ id }) => ticketOf(id)),
    )
    for (const home of new Set(useless.map(({ id }) => runPlace(id)?.shard ?? 0))) await deliverTickets(server, home)
  }
  return runs
}

const CONFIRM = runScript(`
local results = {}
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  results[#results + 1] = r and r.st == 'X' and r.token == ARGV[at + 1] and holdsKey(fixed(r)) and 1 or 0
end
return results`)

/** Settles runs whose keys are in other shards: asks for the tickets, settles, and frees the keys. */
export async function settleTickets(
  server: Server,
  settlements: readonly Settlement[],
  settle: (confirmed: readonly Settlement[]) => Promise<readonly SettleResult[]>,
): Promise<SettleResult[]> {
  const keyShard = ({ run }: Settlement) => server.tickets.get(run) ?? 0
  const held = await inShards(settlements, keyShard, async (shard, own) => {
    const args = own.flatMap(({ run, token }) => [ticketOf(run), token])
    return textsOf(await server.read(CONFIRM, shard, args))
  })
  const confirmed = settlements.filter((_, at) => held[at] === '1')
  const results = await settle(confirmed)
  await inShards(confirmed, keyShard, async (shard, own) => {
    await server.write(
      END,
      shard,
      own.map(({ run }) => ticketOf(run)),
    )
    return []
  })
  for (const { run } of settlements) server.tickets.delete(run)
  // A run that is tried again had to wait with its next ticket until this one was gone.
  for (const home of new Set(confirmed.map(({ run }) => runPlace(run)?.shard ?? 0))) await deliverTickets(server, home)
  const byRun = new Map(confirmed.map(({ run }, at) => [run, results[at] ?? 'stale']))
  return settlements.map(({ run }) => byRun.get(run) ?? 'stale')
}
