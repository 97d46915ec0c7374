/**
 * Keys of other shards. A run is in the shard of its schedule, its key in the shard of the key's name, and no script sees
 * both. So a ticket stands for the run in the key's shard: it queues, waits in line, is claimed and holds the key there,
 * like any run with a key. Whoever has claimed the ticket starts the run in its own shard, with the ticket's token.
 *
 * A run that waits for others of its schedule has its ticket, too, which waits for nothing but that run: it counts against
 * the key. One that was enqueued on condition that its key is free has its ticket on that condition, and goes without it.
 *
 * - Ticket not sent, or lost on the way: the run stands in `out` until its ticket is known to be there. Sweeps send what is
 *   left, and send again what has had no answer for long; a ticket that is there already is left as it is.
 * - Ticket claimed, run not started (crash, lost reply): the beat does not list it, or the instance dies: it is given back.
 *   Until its claimer has said that the run started, the key may be free after all: a copy that would skip because of it
 *   waits, and skips as soon as the start is confirmed. A claim whose confirmation was lost is repeated with its number.
 * - The run has ended, or was taken back: it stands in `drop` until its ticket is gone. If that is claimed before, it is
 *   thrown away by its claimer or by the drop, whichever comes first, and the key is free. One that waits is never claimed: if it is not sent again for long, it has no run.
 * - The key is taken from the ticket (lease over, reset): it is claimed anew, with a higher token, and starting the run
 *   with that fences the attempt before it.
 * - Settle asks for the ticket first, settles the run (refused when its lease has run out in its own shard, which it does
 *   before the ticket's), and then frees the key. After a crash in between, the ticket outlives its run until it is claimed.
 */
import type { ClaimedRun, ClaimRequest, Settlement, SettleResult } from '../../../core/store.js'
import { runScript } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { runPlace, ticketOf, toRun } from '../runs/run-codec.js'
import { word } from '../schema/words.js'
import { deliverTickets } from './deliver-tickets.js'
import { inShards } from './shards.js'

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
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  -- With another token it is at work for another, who has the key by it.
  if r and r.st == 'X' and r.token == ARGV[at + 1] then endRun(r, 'C') end
end
finish()
return { wakes }`)

/** How many copies one script ends that waited to learn whether their key is busy. The rest run when it is free. */
const COPIES = 1_000

const STARTED = runScript(`
local function confirm(r)
  r.wait = '-'
  change(r)
  local m = name(fixed(r).key)
  if mayBeFree(m) or not isBusy(m, tonumber(r.limit)) then return end
  for _, n in ipairs(redis.call('SRANDMEMBER', KEYS[1] .. 'kb:' .. r.key, ${COPIES})) do
    local copy = load(n)
    if copy and copy.wait == 'b' then endRun(copy, 'K', 'busy') else redis.call('SREM', KEYS[1] .. 'kb:' .. r.key, n) end
  end
end
for at = 1, #ARGV, 3 do
  local r = load(ARGV[at])
  if r and r.st == 'X' and r.token == ARGV[at + 1] then
    if ARGV[at + 2] == '0' then endRun(r, 'C') elseif r.wait == 'u' then confirm(r) end
  end
end
finish()
return { wakes }`)

/** Starts the runs whose tickets were claimed, and confirms that. One that cannot be started gives its key back at once. */
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
  const runs = started.filter((run) => run !== undefined)
  for (const { id, token } of runs) server.tickets.add({ run: id, token }, shard)
  await server.write(
    STARTED,
    shard,
    tickets.flatMap(({ id, token }, at) => [ticketOf(id), token, started[at] === undefined ? 0 : 1]),
  )
  const useless = tickets.filter((_, at) => started[at] === undefined)
  for (const home of new Set(useless.map(({ id }) => runPlace(id)?.shard ?? 0))) await deliverTickets(server, home)
  return runs
}

const CONFIRM = runScript(`
local results = {}
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  results[#results + 1] = r and r.st == 'X' and r.token == ARGV[at + 1] and holdsKey(fixed(r)) and 1 or 0
end
return results`)

const SETTLED = runScript(`
local results = {}
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  results[#results + 1] = r and r.settled == ARGV[at + 1] and 1 or 0
end
return results`)

/** Settles runs whose keys are in other shards: asks for the tickets, settles, and frees the keys. */
export async function settleTickets(
  server: Server,
  settlements: readonly Settlement[],
  settle: (confirmed: readonly Settlement[]) => Promise<readonly SettleResult[]>,
): Promise<SettleResult[]> {
  const keyShard = (each: Settlement) => server.tickets.shardOf(each) ?? 0
  const held = await inShards(settlements, keyShard, async (shard, own) => {
    const args = own.flatMap(({ run, token }) => [ticketOf(run), token])
    return textsOf(await server.read(CONFIRM, shard, args))
  })
  const confirmed = settlements.filter((_, at) => held[at] === '1')
  const [results, before] = await Promise.all([
    settle(confirmed),
    settledBefore(
      server,
      settlements.filter((_, at) => held[at] !== '1'),
    ),
  ])
  await inShards(confirmed, keyShard, async (shard, own) => {
    await server.write(
      END,
      shard,
      own.flatMap(({ run, token }) => [ticketOf(run), token]),
    )
    return []
  })
  for (const each of settlements) server.tickets.remove(each)
  // A run that is tried again had to wait with its next ticket until this one was gone.
  for (const home of new Set(confirmed.map(homeShard))) await deliverTickets(server, home)
  const known = new Map(confirmed.map((each, at) => [each, results[at] ?? 'stale']))
  return settlements.map((each) => known.get(each) ?? (before.has(each) ? 'settled' : 'stale'))
}

/** Those whose tickets are gone because they were settled: the answer to that was lost. */
async function settledBefore(server: Server, settlements: readonly Settlement[]): Promise<ReadonlySet<Settlement>> {
  const settled = await inShards(settlements, homeShard, async (shard, own) => {
    const args = own.flatMap(({ run, token }) => [runPlace(run)?.number ?? '-', token])
    return textsOf(await server.read(SETTLED, shard, args))
  })
  return new Set(settlements.filter((_, at) => settled[at] === '1'))
}

function homeShard({ run }: Settlement): number {
  return runPlace(run)?.shard ?? 0
}
