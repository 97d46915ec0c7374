/** Ending attempts, many in one script. Only the newest token of a run that still holds its key counts. */
import type { Outcome } from '../../../core/run.js'
import type { Settlement, SettleResult } from '../../../core/store.js'
import { toText } from '../../../core/stored-text.js'
import { inShards } from '../cluster/shards.js'
import { settleTickets } from '../cluster/tickets.js'
import { runScript } from '../connection/script.js'
import type { Reply, Server } from '../connection/server.js'
import { homeOf } from './list.js'
import { runPlace } from './run-codec.js'

/** How many arguments say what the runs of a stretch have in common. */
const ALIKE = 5

/**
 * Arguments: stretches of runs whose attempts ended alike, as those of one claim often do: how many they are, their token,
 * outcome, delay, and result or error; then the number of each.
 */
export const SETTLE = runScript(`
local ns, texts, settledHere, at = {}, {}, {}, 1
while at <= #ARGV do
  for index = at + ${ALIKE}, at + ${ALIKE} - 1 + ARGV[at] do ns[#ns + 1] = ARGV[index] end
  at = at + ${ALIKE} + ARGV[at]
end
eachText(ns, function(n, text) texts[n] = text end)

-- Most runs succeed and have no key: they are ended without being taken apart. Answers whether it was so.
local RUNNING = '^X( %- %d+ %d+ %d+ )(%d+)( %d+ %d %d [^ ]+ [^ ]+ [^ ]+ [^ ]+ )%- [^ ]+ ([^ ]+) %- ([^ ]+) ([pl])([^\\n]+)()\\n(.) [^ ]+ . [^ ]+ ([^ ]+) [^\\n]+\\n()\\n\\n'
local function succeed(n, text, token, result)
  local counts, own, times, tick, inst, kind, kept, madeAt, origin, sched, resultAt = string.match(text, RUNNING)
  if own ~= token or (kind == 'l' and origin ~= 't') then return false end
  local gone = collect(runningGone, inst)
  gone[#gone + 1] = n
  if kind == 'l' then
    redis.call('ZREM', KEYS[1] .. 'e:' .. sched, n)
    touch(touchedLanes, sched)
  end
  if kept == 'a' then
    changeText(n, 'S' .. counts .. own .. times .. nowText .. ' ' .. own .. ' ' .. tick .. ' - ' .. inst .. ' ' .. kind .. kept ..
      string.sub(text, madeAt, resultAt - 1) .. result .. string.sub(text, resultAt))
    endings[#endings + 1] = nextNumber()
    endings[#endings + 1] = n
    if kind == 'l' then redis.call('ZADD', KEYS[1] .. 'l:' .. sched, n, n) end
  else changeText(n, '').gone = true end
  wake(SETTLED)
  return true
end

local function isCurrent(r, token)
  if r.st ~= 'X' or r.token ~= token then return false end
  if string.byte(r.kind) ~= 120 then return true end
  -- A lease that ran out counts as held until somebody took it, which cannot be seen of one in another shard.
  if fixed(r).remote then return instanceEnd(r.inst) > now end
  return r.key == '-' or holdsKey(r)
end

local function apply(r, kind, delay, json)
  if kind == 'S' then return endRun(r, 'S', nil, nil, json) end
  if kind == 'C' then return endRun(r, 'C', nil, json) end
  if kind == 'F' then
    r.failures = int(r.failures + 1)
    return endRun(r, 'F', nil, json)
  end
  if r.cancel == '1' then return endRun(r, 'C', nil, json) end
  if kind == 'r' then
    r.failures = int(r.failures + 1)
    setTexts(r, '', json)
  end
  giveBack(r, now + tonumber(delay))
end

local function settle(n, token, kind, delay, json)
  local text = texts[n]
  if settledHere[n] then return settledHere[n] == token and 's' or 'o' end
  if not text then return 'o' end
  if runs[n] == nil and kind == 'S' and succeed(n, text, token, json) then
    settledHere[n] = token
    return 's'
  end
  if runs[n] == nil then parse(n, text) end
  local r = load(n)
  if not r then return 'o' end
  if r.settled == token then return 's' end
  if not isCurrent(r, token) then return 'o' end
  r.settled = token
  apply(r, kind, delay, json)
  return 's'
end

local results = {}
at = 1
while at <= #ARGV do
  local count, token, kind, delay, json = unpack(ARGV, at, at + ${ALIKE} - 1)
  for index = at + ${ALIKE}, at + ${ALIKE} - 1 + count do results[#results + 1] = settle(ARGV[index], token, kind, delay, json) end
  at = at + ${ALIKE} + count
end
finish()
return { table.concat(results), wakes }`)

/** How many are settled by one script. */
const CHUNK = 500

export async function settleRuns(server: Server, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const ticketed = settlements.filter((each) => server.tickets.shardOf(each) !== undefined)
  if (ticketed.length === 0) return settleAll(server, settlements)
  const others = settlements.filter((each) => !ticketed.includes(each))
  const [first, second] = await Promise.all([
    settleTickets(server, ticketed, (confirmed) => settleAll(server, confirmed)),
    settleAll(server, others),
  ])
  const [theirs, ours] = [[...first], [...second]]
  return settlements.map((each) => (ticketed.includes(each) ? theirs.shift() : ours.shift()) ?? 'stale')
}

function settleAll(server: Server, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  return inShards(
    settlements,
    ({ run }) => homeOf(server, run),
    (shard, own) => settleShard(server, shard, own),
  )
}

/** One script is carried out while the answer to the one before it is on its way. */
async function settleShard(server: Server, shard: number, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const writes: Promise<readonly Reply[]>[] = []
  for (let first = 0; first < settlements.length; first += CHUNK) {
    writes.push(server.write(SETTLE, shard, settlementArgs(settlements.slice(first, first + CHUNK))))
  }
  const letters = (await Promise.all(writes)).map(([answer]) => String(answer)).join('')
  return Array.from(letters, (letter) => (letter === 's' ? 'settled' : 'stale'))
}

function settlementArgs(settlements: readonly Settlement[]): (string | number)[] {
  const args: (string | number)[] = []
  let [countAt, same] = [0, '']
  for (const { run, token, outcome } of settlements) {
    const ended = outcomeArgs(outcome)
    const alike = `${token} ${ended.join(' ')}`
    if (alike !== same) {
      same = alike
      countAt = args.length
      args.push(0, token, ...ended)
    }
    args[countAt] = Number(args[countAt]) + 1
    args.push(runPlace(run)?.number ?? '-')
  }
  return args
}

function outcomeArgs(outcome: Outcome): readonly [string, number, string] {
  switch (outcome.kind) {
    case 'succeeded':
      return ['S', 0, outcome.result === undefined ? '' : toText(outcome.result)]
    case 'failed':
      return ['F', 0, JSON.stringify(outcome.error)]
    case 'retry':
      return ['r', outcome.delayMs, JSON.stringify(outcome.error)]
    case 'released':
      return ['l', 0, '']
    case 'cancelled':
      return ['C', 0, outcome.error === undefined ? '' : JSON.stringify(outcome.error)]
  }
}
