/** Making runs. One without a key, a schedule or a dedupe key is only written down; the others are checked first. */
import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/run.js'
import type { EnqueueResult } from '../../../core/store.js'
import { targetName } from '../../../core/stored-text.js'
import { KEY_WINNER } from '../cluster/key-winner.js'
import { inShards, keyElsewhere, shardOf } from '../cluster/shards.js'
import { runScript, script } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { word } from '../schema/words.js'
import { bodyLines, kindOf, madeLine, runId, runPlace } from './run-codec.js'

export const ENQUEUE = runScript(`${KEY_WINNER}
local added, numbered, written = {}, {}, {}
numbersFrom(ARGV[1])

local function newRun(a, readyAt)
  local n = nextNumber()
  numbered[#numbered + 1] = n
  numbered[#numbered + 1] = n
  return n, newText(int(readyAt), '-', a.tick == 'now' and nowText or a.tick, a.kind, '\\n' .. a.made .. '\\n\\n\\n' .. a.body)
end

local function overlapWinner(sched, overlap)
  if overlap == 's' then
    ripenLane(sched)
    local engaged, waiting = redis.call('ZRANGE', KEYS[1] .. 'e:' .. sched, 0, 0)[1], redis.call('ZRANGE', KEYS[1] .. 'w:' .. sched, 0, 0)[1]
    if engaged and waiting then return engaged < waiting and engaged or waiting end
    return engaged or waiting
  end
  if overlap == 'o' then return redis.call('ZRANGE', KEYS[1] .. 'w:' .. sched, 0, 0)[1] end
end

local function refusal(f, a, readyAt)
  local same = f.dedupe ~= '-' and dedupeOf(f.target, f.dedupe)
  if same then return 'd', same end
  if f.origin == 'b' then
    local known = redis.call('HGET', KEYS[1] .. 'b:' .. f.sched, a.tick .. '/' .. f.backfill)
    if known then return 'd', known end
  end
  local winner = a.check == '1' and f.key ~= '-' and keyWinner(f, readyAt)
  if not winner and f.sched ~= '-' then winner = overlapWinner(f.sched, a.overlap) end
  if winner then return 'b', winner end
end

-- Answers whether the run has to wait for others of its schedule.
local function meetOverlap(sched, overlap)
  if sched == '-' or overlap == 'a' then return false end
  if overlap == 'c' then makeWay(sched) end
  ripenLane(sched)
  return redis.call('ZCARD', KEYS[1] .. 'e:' .. sched) + redis.call('ZCARD', KEYS[1] .. 'w:' .. sched) > 0
end

local function enqueue(a)
  local readyAt = a.readyAt ~= '-' and tonumber(a.readyAt) or now + tonumber(a.delay)
  if string.sub(a.kind, 1, 1) == 'p' then
    local n, text = newRun(a, readyAt)
    written[#written + 1] = n
    written[#written + 1] = text
    knowQueue(a.prio, a.target)
    local queue = collect(added, KEYS[1] .. 'q:' .. a.prio .. ':' .. a.target)
    queue[#queue + 1] = readyAt
    queue[#queue + 1] = n
    return 'e', n
  end
  local f = fixed({ rest = '\\n' .. a.made })
  local refused, winner = refusal(f, a, readyAt)
  if refused then return refused, winner end
  local waits = meetOverlap(f.sched, a.overlap)
  local r = fixed(parse(newRun(a, readyAt)))
  change(r)
  if r.origin == 'b' then redis.call('HSET', KEYS[1] .. 'b:' .. r.sched, r.tick .. '/' .. r.backfill, r.n) end
  openDedupe(r)
  r.new = true
  if r.remote and a.check == '1' then redis.call('SADD', KEYS[1] .. 'checked', r.n) end
  if waits then makeWait(r, 'o') else makeReady(r) end
  return 'e', r.n
end

local results = {}
for at = 2, #ARGV, 10 do
  local outcome, n = enqueue({ kind = ARGV[at], prio = ARGV[at + 1], target = ARGV[at + 2], made = ARGV[at + 3],
    body = ARGV[at + 4], readyAt = ARGV[at + 5], delay = ARGV[at + 6], tick = ARGV[at + 7], check = ARGV[at + 8],
    overlap = ARGV[at + 9] })
  results[#results + 1] = outcome .. n
end
for key, pairs_ in pairs(added) do batch('ZADD', key, pairs_) end
batch('ZADD', KEYS[1] .. 'all', numbered)
batch('HSET', KEYS[1] .. 'runs', written)
if #written > 0 then wake(RUNS) end
finish()
return { results, wakes }`)

const OVERLAPS = { allow: 'a', skip: 's', 'queue-one': 'o', 'queue-all': 'q', 'cancel-running': 'c' } as const

export async function enqueueRuns(server: Server, runs: readonly NewRun[], tx: unknown): Promise<EnqueueResult[]> {
  if (tx !== undefined) {
    throw failure('UNSUPPORTED', 'the Redis store has no transactions to enqueue in: enqueue without `tx`')
  }
  return inShards(
    runs,
    (run) => homeFor(server, run),
    (shard, own) => enqueueIn(server, shard, own),
  )
}

export async function enqueueIn(server: Server, shard: number, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  const winners = await Promise.all(runs.map((run) => winnerElsewhere(server, shard, run)))
  const accepted = runs.filter((_, at) => winners[at] === undefined)
  const args = accepted.flatMap((run) => runArgs(run, keyElsewhere(server, shard, run.key)))
  const [results] = args.length === 0 ? [] : await server.write(ENQUEUE, shard, [server.numbersFrom(), ...args])
  const outcomes = textsOf(results).map((text): EnqueueResult => {
    const [run, outcome] = [runId(shard, text.slice(1)), text.charAt(0)]
    return { outcome: outcome === 'e' ? 'enqueued' : outcome === 'd' ? 'duplicate' : 'busy', run }
  })
  const checked = accepted.map(
    ({ checkKey, key }) => checkKey === true && keyElsewhere(server, shard, key) !== undefined,
  )
  const answers = checked.includes(true) ? await refusedElsewhere(server, shard, outcomes, checked) : outcomes
  let next = 0
  return winners.map((winner): EnqueueResult => {
    if (winner !== undefined) return { outcome: 'busy', run: winner }
    next += 1
    return answers[next - 1] ?? { outcome: 'busy', run: '' }
  })
}

const CHECK = runScript(`${KEY_WINNER}
local readyAt = ARGV[3] ~= '-' and tonumber(ARGV[3]) or now + tonumber(ARGV[4])
return keyWinner({ key = ARGV[1], limit = ARGV[2] }, readyAt) or false`)

const REFUSED = script(`
local winners = {}
for at = 1, #ARGV do winners[at] = redis.call('GET', KEYS[1] .. 'refused:' .. ARGV[at]) or '' end
return winners`)

/** Those that met a busy key when they got their ticket were not enqueued after all. */
async function refusedElsewhere(
  server: Server,
  shard: number,
  outcomes: readonly EnqueueResult[],
  checked: readonly boolean[],
): Promise<EnqueueResult[]> {
  const numbers = outcomes.map(({ run }) => runPlace(run)?.number ?? '-')
  const winners = textsOf(await server.read(REFUSED, shard, numbers))
  return outcomes.map((result, at): EnqueueResult => {
    const winner = winners[at] ?? ''
    return checked[at] && result.outcome === 'enqueued' && winner !== '' ? { outcome: 'busy', run: winner } : result
  })
}

/**
 * Who has a checked key that is in another shard, as far as can be seen from here. Of two that ask at once both may pass:
 * the key's shard decides when they get their tickets there.
 */
async function winnerElsewhere(server: Server, shard: number, run: NewRun): Promise<string | undefined> {
  const { key, checkKey, readyAt, delayMs = 0 } = run
  const home = keyElsewhere(server, shard, key)
  if (!checkKey || home === undefined || key === undefined || key === 'unstamped') return undefined
  const winner = await server.read(CHECK, home, [word(key.name), key.limit, readyAt ?? '-', delayMs])
  return winner === null ? undefined : runId(home, String(winner))
}

/** Where a run must be to meet those that it has to do with. One that has to do with nobody may be anywhere. */
export function homeFor(server: Server, { schedule, dedupe, target, key }: NewRun): number {
  const { shards } = server
  if (schedule !== undefined) return shardOf(schedule, shards)
  if (dedupe !== undefined) return shardOf(`${targetName(target)} ${dedupe}`, shards)
  if (key !== undefined && key !== 'unstamped') return shardOf(key.name, shards)
  return server.anyShard()
}

function runArgs(run: NewRun, elsewhere: number | undefined): (string | number)[] {
  const { target, priority, origin, readyAt, delayMs = 0, tick, checkKey, overlap = 'allow' } = run
  const instant = tick ?? (origin === 'trigger' ? 'now' : '-')
  return [
    ...[kindOf(run), priority, word(targetName(target)), madeLine(run, elsewhere), bodyLines(run)],
    ...[readyAt ?? '-', delayMs, instant, checkKey === true ? 1 : 0, OVERLAPS[overlap]],
  ]
}

const AVAILABLE = script(`
local key = ARGV[1]
return redis.call('ZCARD', KEYS[1] .. 'k:' .. key) + redis.call('ZCOUNT', KEYS[1] .. 'kd:' .. key, '-inf', now) +
  redis.call('ZCOUNT', KEYS[1] .. 'kv:' .. key, '-inf', now)`)

export async function isAvailable(server: Server, key: string, limit: number): Promise<boolean> {
  return Number(await server.read(AVAILABLE, shardOf(key, server.shards), [word(key)])) < limit
}
