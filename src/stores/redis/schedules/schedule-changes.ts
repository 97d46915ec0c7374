/**
 * Writing schedules. What a write does is decided in JavaScript, from what one script read; another script writes it if
 * all is still as it was read, and nothing at all otherwise. Then it is read and decided anew.
 */
import type { TakeBack } from '../../../core/declare.js'
import { SOON_MS } from '../../../core/hint.js'
import type { SkipRange } from '../../../core/plan.js'
import type { Schedule } from '../../../core/schedule.js'
import { runScript } from '../connection/script.js'
import { listOf, type Server, textsOf } from '../connection/server.js'
import { runId, runPlace } from '../runs/run-codec.js'
import { word } from '../schema/words.js'
import { definitionText, overlapLetter, progressText, toSchedule } from './schedule-codec.js'

export const FORGET_SCHEDULE = `
local function forgetSchedule(id, sched)
  redis.call('HDEL', KEYS[1] .. 's', id)
  redis.call('ZREM', KEYS[1] .. 'ids', id)
  redis.call('ZREM', KEYS[1] .. 'due', id)
  redis.call('ZREM', KEYS[1] .. 'unstamped', id)
  redis.call('ZREM', KEYS[1] .. 'fin', sched)
end`

/** The schedule's ticks that were recorded and never claimed, as one text: what a decision rests on. */
export const UNCLAIMED = `
local function unclaimedTicks(sched)
  local found = {}
  for _, r in ipairs(engagedRuns(sched)) do
    if r.attempt == '0' and fixed(r).origin == 't' then found[#found + 1] = r end
  end
  table.sort(found, function(one, other) return one.n < other.n end)
  return found
end
local function unclaimedText(sched)
  local words = {}
  for at, r in ipairs(unclaimedTicks(sched)) do words[at] = r.n .. ':' .. r.tick end
  return table.concat(words, ' ')
end`

const READ = runScript(`${UNCLAIMED}
local texts, unclaimed, count = {}, {}, #ARGV / 2
for first = 1, count, 2000 do
  for _, text in ipairs(redis.call('HMGET', KEYS[1] .. 's', unpack(ARGV, first, math.min(first + 1999, count)))) do
    texts[#texts + 1] = text or ''
  end
end
for at, text in ipairs(texts) do unclaimed[at] = text == '' and '' or unclaimedText(ARGV[count + at]) end
return { int(now), texts, unclaimed }`)

/** A schedule as it was read, with the ticks that can still be taken back. */
export interface Found {
  readonly id: string
  readonly text: string
  readonly schedule: Schedule | undefined
  readonly unclaimedText: string
  readonly unclaimed: readonly { readonly run: string; readonly tick: number }[]
}

export async function readSchedules(
  server: Server,
  shard: number,
  ids: readonly string[],
): Promise<{ readonly now: number; readonly found: readonly Found[] }> {
  const [now, texts, unclaimed] = listOf(await server.read(READ, shard, [...ids, ...ids.map(word)]))
  const [all, ticks] = [textsOf(listOf(texts)), textsOf(listOf(unclaimed))]
  const found = ids.map((id, at): Found => {
    const [text, unclaimedText] = [all[at] ?? '', ticks[at] ?? '']
    const schedule = text === '' ? undefined : toSchedule(id, text)
    return { id, text, schedule, unclaimedText, unclaimed: parseUnclaimed(shard, unclaimedText) }
  })
  return { now: Number(now), found }
}

function parseUnclaimed(shard: number, text: string): Found['unclaimed'] {
  if (text === '') return []
  return text.split(' ').map((each) => {
    const [number = '', tick] = each.split(':')
    return { run: runId(shard, number), tick: Number(tick) }
  })
}

export const WRITE_SCHEDULES = runScript(`${FORGET_SCHEDULE}${UNCLAIMED}
local at = 0
local function arg()
  at = at + 1
  return ARGV[at]
end
local function args(count)
  local list = {}
  for index = 1, count do list[index] = arg() end
  return list
end

numbersFrom(arg())
local changes = {}
for index = 1, tonumber(arg()) do
  local c = { id = arg(), sched = arg(), was = arg(), unclaimed = arg(), letter = arg(), place = tonumber(arg()),
    progress = arg(), definition = arg(), due = arg(), fin = arg(), unstamped = arg(), cancels = arg(), reason = arg() }
  c.remove, c.skip, c.ranges = args(tonumber(arg())), args(tonumber(arg())), args(tonumber(arg()))
  changes[index] = c
end

-- Looks at all of it before it writes any.
for _, c in ipairs(changes) do
  if (redis.call('HGET', KEYS[1] .. 's', c.id) or '') ~= c.was then return { 0, '0', nowText, 0 } end
  if c.was ~= '' and unclaimedText(c.sched) ~= c.unclaimed then return { 0, '0', nowText, 0 } end
end

local function takeBack(c)
  for index = 1, #c.ranges, 4 do addSkip(c.sched, c.ranges[index], c.ranges[index + 1], c.ranges[index + 2], c.ranges[index + 3]) end
  for _, n in ipairs(c.remove) do
    local r = load(n)
    if r then unrecord(r) end
  end
  for _, n in ipairs(c.skip) do
    local r = load(n)
    if r then endRun(r, 'K', c.reason) end
  end
end

local base = nextSeq()
for _, c in ipairs(changes) do seq = math.max(seq, base + c.place) end
local texts, ids, due, unstamped = {}, {}, {}, {}
for _, c in ipairs(changes) do
  takeBack(c)
  if c.letter == '-' then
    for _, r in ipairs(c.cancels == '1' and engagedRuns(c.sched) or {}) do
      if r.attempt ~= '0' and r.st ~= 'X' and fixed(r).origin == 't' then endRun(r, 'C') end
    end
    forgetSchedule(c.id, c.sched)
  else
    texts[#texts + 1] = c.id
    texts[#texts + 1] = c.letter .. int(base + c.place) .. ' ' .. c.progress .. '\\n' .. c.definition
    if c.was == '' then
      ids[#ids + 1] = 0
      ids[#ids + 1] = c.id
    end
    if c.due ~= '-' then
      due[#due + 1] = inLine(c.due)
      due[#due + 1] = c.id
      if now + ${SOON_MS} >= tonumber(c.due) then wake(SCHEDULES) end
    elseif c.was ~= '' then redis.call('ZREM', KEYS[1] .. 'due', c.id) end
    if c.unstamped == '1' then
      unstamped[#unstamped + 1] = 0
      unstamped[#unstamped + 1] = c.id
    elseif c.was ~= '' then redis.call('ZREM', KEYS[1] .. 'unstamped', c.id) end
    if c.fin ~= '-' then redis.call('ZADD', KEYS[1] .. 'fin', c.fin, c.sched)
    elseif c.was ~= '' then redis.call('ZREM', KEYS[1] .. 'fin', c.sched) end
  end
end
batch('HSET', KEYS[1] .. 's', texts)
batch('ZADD', KEYS[1] .. 'ids', ids)
batch('ZADD', KEYS[1] .. 'due', due)
batch('ZADD', KEYS[1] .. 'unstamped', unstamped)
finish()
return { 1, int(base), nowText, wakes }`)

export interface ScheduleChange {
  readonly found: Found
  /** What it becomes, with its place among the versions that the write gives out; undefined to forget it. */
  readonly schedule: Omit<Schedule, 'version'> | undefined
  readonly place: number
  readonly takeBack: TakeBack
}

/** Writes all changes and answers the first version that they were given, or nothing if another writer was faster. */
export async function writeSchedules(
  server: Server,
  shard: number,
  changes: readonly ScheduleChange[],
): Promise<number | undefined> {
  const args = [server.numbersFrom(), changes.length, ...changes.flatMap(changeArgs)]
  const [written, base] = await server.write(WRITE_SCHEDULES, shard, args)
  return Number(written) === 1 ? Number(base) : undefined
}

function changeArgs({ found, schedule, place, takeBack }: ScheduleChange): (string | number)[] {
  const { remove, skip, reason, unrecorded } = takeBack
  const ranges = unrecorded.flatMap(rangeArgs)
  const [removed, skipped] = [remove.map(numberIn), skip.map(numberIn)]
  return [
    ...[found.id, word(found.id), found.text, found.unclaimedText],
    ...(schedule === undefined ? ['-', 0, '', '', '-', '-', 0, 1] : scheduleArgs(schedule, place)),
    ...[reason, removed.length, ...removed, skipped.length, ...skipped, ranges.length, ...ranges],
  ]
}

function scheduleArgs(schedule: Omit<Schedule, 'version'>, place: number): (string | number)[] {
  const { definition, dueAt } = schedule
  return [
    ...[overlapLetter(definition), place, progressText(schedule), definitionText(schedule)],
    ...[dueAt ?? '-', goesAt(schedule) ?? '-', definition.key === 'unstamped' ? 1 : 0, 0],
  ]
}

/** Since when a schedule is finished that goes with its history. */
export function goesAt({ finishedAt, definition }: Pick<Schedule, 'finishedAt' | 'definition'>): number | undefined {
  return definition.onFinish === 'remove' && definition.app === undefined ? finishedAt : undefined
}

export function rangeArgs({ from, to, count, reason }: SkipRange): (string | number)[] {
  return [from, to, count, reason]
}

function numberIn(run: string): string {
  return runPlace(run)?.number ?? '-'
}
