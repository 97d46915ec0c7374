/** Ending attempts, many in one script. Only the newest token of a run that still holds its key counts. */
import type { Outcome } from '../../core/run.js'
import type { Settlement, SettleResult } from '../../core/store.js'
import { toText } from '../../core/stored-text.js'
import type { Server } from './connection.js'
import { runPlace } from './run-text.js'
import { homeOf } from './runs.js'
import { runScript } from './script.js'
import { inShards } from './shards.js'
import { settleTickets } from './tickets.js'

export const SETTLE = runScript(`
local ns = {}
for at = 1, #ARGV, 5 do ns[#ns + 1] = ARGV[at] end
loadAll(ns)

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

local results = {}
for at = 1, #ARGV, 5 do
  local r, token = load(ARGV[at]), ARGV[at + 1]
  local result = 'o'
  if r then
    if r.settled == token then result = 's'
    elseif isCurrent(r, token) then
      r.settled = token
      apply(r, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
      result = 's'
    end
  end
  results[#results + 1] = result
end
finish()
return { table.concat(results), wakes }`)

/** How many are settled by one script. */
const CHUNK = 500

export async function settleRuns(server: Server, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const ticketed = settlements.filter(({ run }) => server.tickets.has(run))
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

async function settleShard(server: Server, shard: number, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const results: SettleResult[] = []
  for (let first = 0; first < settlements.length; first += CHUNK) {
    const args = settlements.slice(first, first + CHUNK).flatMap(settlementArgs)
    const [letters] = await server.write(SETTLE, shard, args)
    for (const letter of String(letters)) results.push(letter === 's' ? 'settled' : 'stale')
  }
  return results
}

function settlementArgs({ run, token, outcome }: Settlement): (string | number)[] {
  return [runPlace(run)?.number ?? '-', token, ...outcomeArgs(outcome)]
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
