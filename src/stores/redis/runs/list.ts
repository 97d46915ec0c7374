/** Looking at runs, and what people do to them by hand. */
import { checkPageLimit } from '../../../core/page-limit.js'
import { isFinished, type Run } from '../../../core/run.js'
import type { CancelResult, Page, RetryResult, RunQuery, Stamp } from '../../../core/store.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, inShards, keyElsewhere, shardOf } from '../cluster/shards.js'
import { runScript, script } from '../connection/script.js'
import { listOf, type Server, textsOf } from '../connection/server.js'
import { word } from '../schema/words.js'
import { runsOf } from './claim.js'
import { keyWords, runPlace, toRun } from './run-codec.js'

const GET = script(`return redis.call('HGET', KEYS[1] .. 'runs', ARGV[1])`)

export async function getRun(server: Server, id: string): Promise<Run | undefined> {
  const place = runPlace(id)
  if (place === undefined || place.shard >= server.shards) return undefined
  const text = await server.read(GET, place.shard, [place.number])
  return text === null ? undefined : toRun(id, String(text))
}

const CANCEL = runScript(`
local r = load(ARGV[1])
local result = 'missing'
if r then
  if r.st == 'X' then
    requestCancel(r)
    result = 'requested'
  elseif r.st == 'W' or r.st == 'R' then
    endRun(r, 'C')
    result = 'cancelled'
  else result = 'finished' end
end
finish()
return { result, wakes }`)

export async function cancelRun(server: Server, id: string): Promise<CancelResult> {
  const place = runPlace(id)
  if (place === undefined || place.shard >= server.shards) return 'missing'
  const [result] = await server.write(CANCEL, place.shard, [place.number])
  return result as CancelResult
}

const RETRY = runScript(`
local r = load(ARGV[1])
if not r then return { 'missing', 0 } end
if r.st ~= 'F' and r.st ~= 'C' and r.st ~= 'K' then return { 'refused', 0 } end
fixed(r)
local same = r.dedupe ~= '-' and dedupeOf(r.target, r.dedupe)
if same and same ~= r.n then return { 'refused', 0 } end
unended[#unended + 1] = r.n
if r.sched ~= '-' then redis.call('ZREM', KEYS[1] .. 'l:' .. r.sched, r.n) end
r.finishedAt, r.reason, r.cancel, r.rescued, r.failures, r.takeovers, r.startBy = '-', '-', '0', '0', '0', '0', '-'
r.readyAt = int(now)
setTexts(r, '', '')
change(r)
openDedupe(r)
makeReady(r)
finish()
return { 'ready', wakes }`)

export async function retryRun(server: Server, id: string): Promise<RetryResult> {
  const place = runPlace(id)
  if (place === undefined || place.shard >= server.shards) return 'missing'
  const [result] = await server.write(RETRY, place.shard, [place.number])
  return result as RetryResult
}

const STAMP = runScript(`
for at = 1, #ARGV, 2 do
  local r = load(ARGV[at])
  if r and (r.st == 'W' or r.st == 'R') and fixed(r).unst == '1' then
    local text = string.sub(r.rest, r.at)
    r.key, r.limit, r.busy, r.unst = string.match(ARGV[at + 1], '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)')
    r.rest = fixedText(r) .. text
    r.origin = nil
    fixed(r)
    change(r)
    if r.wait == 's' then makeReady(r) end
  end
end
finish()
return { wakes }`)

export async function stampRuns(server: Server, stamps: readonly Stamp[]): Promise<void> {
  await inShards(
    stamps,
    ({ run }) => homeOf(server, run),
    async (shard, own) => {
      await server.write(
        STAMP,
        shard,
        own.flatMap(({ run, key }) => [runPlace(run)?.number ?? '-', keyWords(key, keyElsewhere(server, shard, key))]),
      )
      return []
    },
  )
}

/** The shard that an id names. What no store gave out is in none, and is looked for in the first. */
export function homeOf(server: Server, run: string): number {
  const shard = runPlace(run)?.shard ?? 0
  return shard < server.shards ? shard : 0
}

/** Newest first, from the smallest set that holds all that were asked for; and how many runs there are that have not ended. */
const LIST = script(`
local before, limit, where = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local from = before == '-' and '+inf' or '(' .. before
local ns = {}
if where == '-' then ns = redis.call('ZREVRANGEBYSCORE', KEYS[1] .. 'all', from, '-inf', 'LIMIT', 0, limit)
elseif where == 's' then ns = redis.call('ZREVRANGEBYSCORE', KEYS[1] .. 'unst', from, '-inf', 'LIMIT', 0, limit)
else
  for _, set in ipairs({ 'e:', 'w:', 'l:' }) do
    for _, n in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1] .. set .. ARGV[4], from, '-inf', 'LIMIT', 0, limit)) do ns[#ns + 1] = n end
  end
  for _, n in ipairs(redis.call('ZRANGE', KEYS[1] .. 'd:' .. ARGV[4], 0, -1)) do
    if before == '-' or n < before then ns[#ns + 1] = n end
  end
  table.sort(ns, function(one, other) return one > other end)
end
local found = {}
for at = 1, math.min(#ns, limit) do
  local text = redis.call('HGET', KEYS[1] .. 'runs', ns[at])
  if text then
    found[#found + 1] = ns[at]
    found[#found + 1] = text
  end
end
local open = redis.call('ZCARD', KEYS[1] .. 'all') - redis.call('ZCARD', KEYS[1] .. 'ended')
return { found, math.min(#ns, limit), ns[math.min(#ns, limit)] or '-', open }`)

const CHUNK = 200

interface Chunk {
  readonly runs: readonly Run[]
  /** How many runs of the shard have not ended. */
  readonly open: number
  /** The number to go on before, when there may be more. */
  readonly next?: string
}

async function readChunk(server: Server, shard: number, query: RunQuery, before: string): Promise<Chunk> {
  const { schedule, waitsFor } = query
  const where = waitsFor === 'stamp' ? 's' : schedule === undefined ? '-' : 'l'
  const reply = listOf(await server.read(LIST, shard, [before, CHUNK, where, word(schedule)]))
  const runs = runsOf(shard, textsOf(reply[0]))
  const open = Number(reply[3])
  return Number(reply[1]) < CHUNK ? { runs, open } : { runs, open, next: String(reply[2]) }
}

export async function listRuns(server: Server, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const { schedule, limit } = query
  if (schedule !== undefined) return listShard(server, shardOf(schedule, server.shards), query)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  const inOrder = (one: Run, other: Run) => newestFirst(one.id, other.id)
  return firstOf(pages, limit, inOrder, ({ id }) => id, newestFirst)
}

function newestFirst(one: string, other: string): number {
  const [here, there] = [runPlace(one), runPlace(other)]
  if (here === undefined || there === undefined || here.number === there.number) {
    return (there?.shard ?? 0) - (here?.shard ?? 0)
  }
  return here.number < there.number ? 1 : -1
}

async function listShard(server: Server, shard: number, query: RunQuery): Promise<Page<Run>> {
  const items: Run[] = []
  let before: string | undefined = firstBefore(shard, query.after)
  // Those that have not ended are mostly among the newest: once all of them were seen, nobody need look at the history.
  let unseen = asksForOpen(query) && before === '-' ? undefined : Number.POSITIVE_INFINITY
  for (let looked = 0; before !== undefined && (unseen ?? 1) > 0; looked += CHUNK) {
    if (query.look !== undefined && looked >= query.look) return { items, next: `${before}-${shard}` }
    const chunk: Chunk = await readChunk(server, shard, query, before)
    unseen ??= chunk.open
    for (const run of chunk.runs) {
      if (!isFinished(run)) unseen -= 1
      if (!matches(run, query)) continue
      if (items.length === query.limit) return { items, next: items.at(-1)?.id ?? '' }
      items.push(run)
    }
    before = chunk.next
  }
  return { items }
}

function asksForOpen({ states, waitsFor }: RunQuery): boolean {
  return waitsFor !== undefined || (states?.every((state) => !isFinished({ state })) ?? false)
}

/** Runs of one number are in the order of their shards. */
function firstBefore(shard: number, after: string | undefined): string {
  const place = after === undefined ? undefined : runPlace(after)
  if (place === undefined) return '-'
  return shard < place.shard ? String(Number(place.number) + 1).padStart(16, '0') : place.number
}

function matches(run: Run, query: RunQuery): boolean {
  const { target } = run
  return (
    (query.schedule === undefined || run.schedule === query.schedule) &&
    (query.tick === undefined || run.tick === query.tick) &&
    (query.job === undefined || ('job' in target && target.job === query.job)) &&
    (query.sink === undefined || ('sink' in target && target.sink === query.sink)) &&
    (query.key === undefined || run.key?.name === query.key) &&
    (query.states === undefined || query.states.includes(run.state)) &&
    (query.waitsFor === undefined || run.waitsFor === query.waitsFor)
  )
}
