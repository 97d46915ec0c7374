/**
 * Recording ticks. One script reads a batch of due schedules, the planner plans them here, and another script writes
 * ticks, skips and cursors. What a plan rests on travels with it and is compared before anything of it is written: the
 * schedule's first line, with its version and its cursor, and, where ticks may not overlap, its unfinished runs. One that
 * somebody else has moved on meanwhile is left alone. So a tick is recorded once, whoever plans at the same time.
 *
 * Two who plan at once would plan the same. A mark, which lasts half a second and is gone with the batch, makes the
 * second one look behind the batch of the first. Nothing but the sharing of work rests on it.
 */
import { randomUUID } from 'node:crypto'
import type { Plan, Plannable, Unfinished } from '../../core/plan.js'
import { DEFAULT_MISSED } from '../../core/policies.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import { targetOptions } from '../../core/stored-text.js'
import { listOf, type Reply, type Server, textsOf } from './connection.js'
import { peekDue } from './peek.js'
import { kindOf, madeParts } from './run-text.js'
import { goesAt, rangeArgs } from './schedule-changes.js'
import { type Body, type Head, progressText, toBody, toHead } from './schedule-text.js'
import { runScript } from './script.js'
import { keyElsewhere } from './shards.js'
import { numberOf, word } from './token-text.js'

/** How many schedules one step takes. */
const CHUNK = 500

/** A planner that knows a thousand unfinished runs, and the newest that wait, knows enough. */
const ENOUGH = 1_000

/** The unfinished runs of a schedule as one text. */
const UNFINISHED = `
local function unfinishedText(sched)
  local words = {}
  for at, r in ipairs(engagedRuns(sched, ${ENOUGH})) do
    words[at] = r.st .. (r.attempt == '0' and '0' or '1') .. (fixed(r).origin == 't' and r.tick or '-')
  end
  return table.concat(words, ' ')
end`

const DUE = runScript(`${UNFINISHED}
local horizon, limit, self = now + tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local behind = 0
local marks = redis.call('HGETALL', KEYS[1] .. 'planners')
for at = 1, #marks, 2 do
  if tonumber(marks[at + 1]) <= now then redis.call('HDEL', KEYS[1] .. 'planners', marks[at])
  elseif marks[at] ~= self then behind = behind + limit end
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1] .. 'due', '-inf', '(' .. int(horizon + 1), 'LIMIT', behind, limit)
local lines, unfinished = {}, {}
if #ids > 0 then
  redis.call('HSET', KEYS[1] .. 'planners', self, int(now + 500))
  for at, text in ipairs(redis.call('HMGET', KEYS[1] .. 's', unpack(ids))) do
    lines[at] = text and string.match(text, '^[^\\n]*\\n[^\\n]*') or ''
    -- A schedule that allows overlap does not ask.
    if text and string.byte(text) ~= 97 then unfinished[at] = unfinishedText(escape(ids[at]))
    else unfinished[at] = '' end
  end
end
local first = redis.call('ZRANGE', KEYS[1] .. 'due', 0, 0, 'WITHSCORES')[2]
return { int(now), ids, lines, unfinished, first and int(math.floor(first)) or '-', 0 }`)

/** How many arguments a template and a plan have. */
const TEMPLATE = 7
const PLAN = 12

const RECORD = runScript(`${UNFINISHED}
redis.call('HDEL', KEYS[1] .. 'planners', ARGV[1])
local templates, at = {}, 3
for index = 1, tonumber(ARGV[2]) do
  templates[tostring(index)] = { prio = ARGV[at], target = ARGV[at + 1], kind = ARGV[at + 2], before = '\\n' .. ARGV[at + 3] .. ' ',
    after = ' ' .. ARGV[at + 4] .. '\\n\\n\\n' .. ARGV[at + 5] .. '\\n', checks = ARGV[at + 6] == '1' }
  at = at + ${TEMPLATE}
end

local recorded, skipped = 0, 0
local texts, due, written, numbered, added = {}, {}, {}, {}, {}

-- A former schedule of this id may have had a tick at an instant that this one reaches back to.
local function isKnown(sched, tick)
  for _, set in ipairs({ 'e:', 'w:', 'l:' }) do
    local ns = redis.call('ZREVRANGE', KEYS[1] .. set .. sched, 0, 999)
    loadAll(ns)
    for _, n in ipairs(ns) do
      if runs[n] and runs[n].tick == tick and fixed(runs[n]).origin == 't' then return true end
    end
  end
  return false
end

local function record(sched, t, payload, tick, readyAt, startBy, flags)
  if string.find(flags, 'k', 1, true) and isKnown(sched, tick) then return end
  if readyAt == '=' then readyAt = tick end
  local n = string.format('%016.0f', nextSeq())
  recorded = recorded + 1
  numbered[#numbered + 1] = n
  numbered[#numbered + 1] = n
  local text = newText(readyAt, startBy, tick, t.kind, t.before .. sched .. t.after .. payload)
  if flags == '-' and not t.checks then
    written[#written + 1] = n
    written[#written + 1] = text
    local queue = collect(added, t)
    queue[#queue + 1] = readyAt
    queue[#queue + 1] = n
    redis.call('ZADD', KEYS[1] .. 'e:' .. sched, n, n)
    return
  end
  local r = parse(n, text)
  r.new = true
  change(r)
  if string.find(flags, 'w', 1, true) then
    makeWait(r, 'o')
    touch(touchedLanes, sched)
  else makeReady(r) end
end

-- Under a policy that drops what was missed, older ticks that never began are taken back.
local function retract(sched, through)
  for _, r in ipairs(engagedRuns(sched)) do
    if r.attempt == '0' and fixed(r).origin == 't' and tonumber(r.tick) <= tonumber(through) then endRun(r, 'K', 'missed') end
  end
end

local FOUR = '([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+)'

-- Writes one plan. This is done once a tick, so what most plans have not is not looked into.
local function apply(p, text, head)
  local id, sched = ARGV[p], ARGV[p + 1]
  if sched == '' then sched = id end
  if ARGV[p + 8] ~= '-' then retract(sched, ARGV[p + 8]) end
  if ARGV[p + 9] == '1' then makeWay(sched) end
  local ticks, skips = ARGV[p + 10], ARGV[p + 11]
  if ticks ~= '' then
    local t, payload = templates[ARGV[p + 4]], string.sub(text, string.find(text, '\\n', #head + 1, true) + 1)
    local tick, readyAt, startBy, flags = string.match(ticks, '^' .. FOUR .. '$')
    if tick then record(sched, t, payload, tick, readyAt, startBy, flags)
    else for a, b, c, d in string.gmatch(ticks, FOUR) do record(sched, t, payload, a, b, c, d) end end
  end
  if skips ~= '' then
    for from, to, count, reason in string.gmatch(skips, FOUR) do
      addSkip(sched, from, to, count, reason)
      skipped = skipped + tonumber(count)
    end
  end
  texts[#texts + 1] = id
  texts[#texts + 1] = ARGV[p + 5] .. string.sub(text, #head)
  if ARGV[p + 6] == '-' then redis.call('ZREM', KEYS[1] .. 'due', id)
  else
    due[#due + 1] = inLine(tonumber(ARGV[p + 6]))
    due[#due + 1] = id
  end
  if ARGV[p + 7] ~= '-' then redis.call('ZADD', KEYS[1] .. 'fin', ARGV[p + 7], sched) end
end

local plans, ids = at + 1, {}
for index = 1, tonumber(ARGV[at]) do ids[index] = ARGV[plans + (index - 1) * ${PLAN}] end
for index, text in ipairs(redis.call('HMGET', KEYS[1] .. 's', unpack(ids))) do
  local p = plans + (index - 1) * ${PLAN}
  local head = ARGV[p + 2]
  if text and string.sub(text, 1, #head) == head then
    local sched = ARGV[p + 1] == '' and ARGV[p] or ARGV[p + 1]
    if string.byte(text) == 97 or unfinishedText(sched) == ARGV[p + 3] then apply(p, text, head) end
  end
end
batch('HSET', KEYS[1] .. 's', texts)
batch('ZADD', KEYS[1] .. 'due', due)
batch('HSET', KEYS[1] .. 'runs', written)
batch('ZADD', KEYS[1] .. 'all', numbered)
for t, pairs_ in pairs(added) do
  knowQueue(t.prio, t.target)
  batch('ZADD', KEYS[1] .. 'q:' .. t.prio .. ':' .. t.target, pairs_)
end
if recorded > 0 then wake(RUNS) end
if #due > 0 then wake(SCHEDULES) end
finish()
local first = redis.call('ZRANGE', KEYS[1] .. 'due', 0, 0, 'WITHSCORES')[2]
return { recorded, skipped, first and int(math.floor(first)) or '-', wakes }`)

/** What was read before of definitions: many schedules share one. */
export class Definitions {
  readonly self = randomUUID()
  readonly #known = new Map<number, Map<string, Known>>()

  of(server: Server, shard: number, line: string, overlap: Head['overlap']): Known {
    const own = this.#known.get(shard) ?? new Map<string, Known>()
    this.#known.set(shard, own)
    const known = own.get(line)
    if (known !== undefined && known.overlap === overlap) return known
    const body = toBody(line)
    const read = { body, overlap, template: templateArgs(body, keyElsewhere(server, shard, body.key)) }
    if (own.size >= CAPACITY) own.clear()
    own.set(line, read)
    return read
  }
}

const CAPACITY = 20_000

interface Known {
  readonly body: Body
  readonly overlap: Head['overlap']
  readonly template: readonly (string | number)[]
}

/** What all runs of a schedule have in common. */
function templateArgs({ target, priority, keep, key }: Body, elsewhere: number | undefined): (string | number)[] {
  const made = { origin: 'tick', target, priority, keep, ...(key === undefined ? {} : { key }) } as const
  const [before, after] = madeParts(made, elsewhere)
  const [, , , targetWord = ''] = before.split(' ')
  const kind = kindOf({ ...made, schedule: '-' })
  return [priority, targetWord, kind, before, after, targetOptions(target) ?? '', key === undefined ? 0 : 1]
}

interface Due {
  readonly id: string
  readonly line: string
  readonly head: Head
  readonly known: Known
  readonly unfinishedText: string
}

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] }

export async function advanceSchedules(
  server: Server,
  definitions: Definitions,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  if (server.shards === 1) return advanceShard(server, 0, definitions, request)
  const { now, shares, nextDueAt } = await peekDue(server, request.lookaheadMs, request.limit)
  const steps = shares.map((limit, shard) =>
    limit === 0 ? undefined : advanceShard(server, shard, definitions, { ...request, limit }),
  )
  const results = (await Promise.all(steps)).filter((step) => step !== undefined)
  if (results.length === 0)
    return { now, schedules: 0, recorded: 0, skipped: 0, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
  const after = await peekDue(server, 0, 0)
  return {
    now: Math.max(...results.map((each) => each.now)),
    schedules: results.reduce((sum, each) => sum + each.schedules, 0),
    recorded: results.reduce((sum, each) => sum + each.recorded, 0),
    skipped: results.reduce((sum, each) => sum + each.skipped, 0),
    ...(after.nextDueAt === undefined ? {} : { nextDueAt: after.nextDueAt }),
  }
}

async function advanceShard(
  server: Server,
  shard: number,
  definitions: Definitions,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  let [schedules, recorded, skipped] = [0, 0, 0]
  const seen = new Set<string>()
  for (;;) {
    const limit = Math.min(CHUNK, request.limit - schedules)
    const reply = listOf(await server.read(DUE, shard, [request.lookaheadMs, limit, definitions.self]))
    const now = Number(reply[0])
    // One that is due again after its step is not taken twice.
    const batch = dueSchedules(server, shard, definitions, reply).filter(({ id }) => !seen.has(id))
    if (batch.length === 0) return result({ now, schedules, recorded, skipped }, reply[4])
    for (const { id } of batch) seen.add(id)
    const args = recordArgs(definitions.self, batch, request, now)
    const [ticks, skips, next] = await server.write(RECORD, shard, args)
    schedules += batch.length
    recorded += Number(ticks)
    skipped += Number(skips)
    if (batch.length < limit || schedules >= request.limit) return result({ now, schedules, recorded, skipped }, next)
  }
}

function result(advanced: Omit<AdvanceResult, 'nextDueAt'>, next: Reply | undefined): AdvanceResult {
  const nextDueAt = numberOf(String(next))
  return { ...advanced, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

function dueSchedules(
  server: Server,
  shard: number,
  definitions: Definitions,
  [, ids, lines, unfinished]: readonly Reply[],
): Due[] {
  const [texts, open] = [textsOf(lines), textsOf(unfinished)]
  const due: Due[] = []
  for (const [at, id] of textsOf(ids).entries()) {
    const text = texts[at] ?? ''
    const end = text.indexOf('\n')
    // It went away in this very moment.
    if (end < 0) continue
    const line = text.slice(0, end)
    const head = toHead(line)
    const known = definitions.of(server, shard, text.slice(end + 1), head.overlap)
    due.push({ id, line, head, known, unfinishedText: open[at] ?? '' })
  }
  return due
}

function recordArgs(
  self: string,
  batch: readonly Due[],
  { plan, lookaheadMs }: AdvanceRequest,
  now: number,
): (string | number)[] {
  const templates = new Map<Known['template'], number>()
  const plans: (string | number)[] = []
  for (const due of batch) {
    const { template } = due.known
    const place = templates.get(template) ?? templates.size + 1
    templates.set(template, place)
    const planned = plan(plannableOf(due), unfinishedRuns(due.unfinishedText), now, now + lookaheadMs)
    plans.push(...planArgs(due, place, planned, now))
  }
  return [self, templates.size, ...[...templates.keys()].flat(), batch.length, ...plans]
}

/** A due schedule as the planner sees it. Field by field: this is done once a tick. */
function plannableOf({ id, head, known: { body } }: Due): Plannable {
  const { anchor, cursor, overlap, remaining, pausedAt } = head
  const { timeline, jitterMs, missed = DEFAULT_MISSED } = body
  const schedule: Mutable<Plannable> = { id, timeline, anchor, cursor, overlap, missed, jitterMs }
  if (body.startsAt !== undefined) schedule.startsAt = body.startsAt
  if (body.endsAt !== undefined) schedule.endsAt = body.endsAt
  if (body.deadlineMs !== undefined) schedule.deadlineMs = body.deadlineMs
  if (remaining !== undefined) schedule.remaining = remaining
  if (pausedAt !== undefined) schedule.pausedAt = pausedAt
  return schedule
}

function unfinishedRuns(text: string): Unfinished[] {
  if (text === '') return []
  return text.split(' ').map((each) => ({
    state: each.startsWith('X') ? 'running' : each.startsWith('W') ? 'waiting' : 'ready',
    started: each.charAt(1) === '1',
    ...(each.charAt(2) === '-' ? {} : { tick: Number(each.slice(2)) }),
  }))
}

function planArgs(due: Due, template: number, plan: Plan, now: number): (string | number)[] {
  const { id, line, head, known, unfinishedText } = due
  // A plan made from an older reading moves nothing back: cursors only grow.
  const moved = plan.cursor < head.cursor ? head : movedBy(head, plan, now)
  const goes = goesAt({ finishedAt: moved.finishedAt, definition: known.body } as Parameters<typeof goesAt>[0])
  const escaped = word(id)
  return [
    // Compared with its line's end, so that no line is taken for a longer one.
    ...[
      id,
      escaped === id ? '' : escaped,
      `${line}\n`,
      unfinishedText,
      template,
      `${versionOf(line)} ${progressText(moved)}`,
    ],
    ...[moved.dueAt ?? '-', goes ?? '-', plan.retractThrough ?? '-', plan.cancelUnfinished ? 1 : 0],
    ...[ticksText(head, plan), plan.skips.flatMap(rangeArgs).join(' ')],
  ]
}

/** The letter and the version that a schedule's first line begins with: a plan leaves them as they are. */
function versionOf(line: string): string {
  return line.slice(0, line.indexOf(' '))
}

function movedBy(head: Head, { cursor, remaining, nextAt, dueAt }: Plan, now: number): Head {
  const { overlap, version, anchor, createdAt, updatedAt, pausedAt } = head
  const moved: Mutable<Head> = { overlap, version, anchor, createdAt, updatedAt, cursor }
  if (pausedAt !== undefined) moved.pausedAt = pausedAt
  if (remaining !== undefined) moved.remaining = remaining
  if (nextAt === undefined) moved.finishedAt = now
  else moved.nextAt = nextAt
  if (dueAt !== undefined) moved.dueAt = dueAt
  return moved
}

function ticksText({ cursor, createdAt }: Head, { ticks }: Plan): string {
  let text = ''
  for (const { at, readyAt, startBy, waits } of ticks) {
    // A tick is unique by its instant: while its run is known, and behind the cursor for ever.
    if (at <= cursor) continue
    const flags = `${at <= createdAt ? 'k' : ''}${waits ? 'w' : ''}`
    text += `${text === '' ? '' : ' '}${at} ${readyAt === at ? '=' : readyAt} ${startBy ?? '-'} ${flags === '' ? '-' : flags}`
  }
  return text
}
