/** Looking which schedules are due, with all that planning them takes. */

import type { Mutable } from '../../../core/mutable.js'
import type { Plannable, Unfinished } from '../../../core/plan.js'
import { DEFAULT_MISSED } from '../../../core/policies.js'
import { runScript } from '../connection/script.js'
import { listOf, type Server, textsOf } from '../connection/server.js'
import { BUNDLES } from '../lua/bundles.js'
import { numberOf } from '../schema/words.js'
import type { Definitions, Known } from './definitions.js'
import { type Head, toHead } from './schedule-codec.js'

/** A planner that knows a thousand unfinished runs, and the newest that wait, knows enough. */
const ENOUGH = 1_000

/** Texts up to this length are sent as they are: cutting the payload off would cost more than sending it. */
const SHORT = 600

/** A schedule's id, and the three lines of its text. */
const LINES = 4

/** The unfinished runs of a schedule as one text. */
export const UNFINISHED = `
local function unfinishedText(sched)
  local words = {}
  for at, r in ipairs(engagedRuns(sched, ${ENOUGH})) do
    words[at] = r.st .. (r.attempt == '0' and '0' or '1') .. (fixed(r).origin == 't' and r.tick or '-')
  end
  return table.concat(words, ' ')
end`

const DUE = runScript(`${UNFINISHED}${BUNDLES}
local horizon, offset, count, limit, self =
  now + tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local marks = redis.call('HGETALL', KEYS[1] .. 'planners')
for at = 1, #marks, 2 do
  if tonumber(marks[at + 1]) <= now then redis.call('HDEL', KEYS[1] .. 'planners', marks[at])
  elseif marks[at] ~= self then offset = offset + limit end
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1] .. 'due', '-inf', '(' .. int(horizon + 1), 'LIMIT', offset, count)
local lines, unfinished = {}, {}
if #ids > 0 then
  redis.call('HSET', KEYS[1] .. 'planners', self, int(now + 500))
  local texts = redis.call('HMGET', KEYS[1] .. 's', unpack(ids))
  for at = 1, #ids do
    local text = texts[at]
    lines[2 * at - 1] = ids[at]
    lines[2 * at] = not text and '\\n\\n' or #text <= ${SHORT} and text
      or string.sub(text, 1, string.find(text, '\\n', string.find(text, '\\n', 1, true) + 1, true))
    -- A schedule that allows overlap does not ask.
    if text and string.byte(text) ~= 97 then
      unfinished[#unfinished + 1] = at
      unfinished[#unfinished + 1] = unfinishedText(escape(ids[at]))
    end
  end
end
local first = redis.call('ZRANGE', KEYS[1] .. 'due', 0, 0, 'WITHSCORES')[2]
return { int(now), #ids, bundles(lines), unfinished, first and int(math.floor(first)) or '-' }`)

export interface DueQuery {
  readonly lookaheadMs: number
  /** Behind how many, which are being planned already. */
  readonly offset: number
  readonly count: number
  /** How many whoever else plans may have before him. */
  readonly limit: number
}

export interface DueBatch {
  readonly now: number
  readonly due: readonly Due[]
  /** How many were asked for, and whether as many were found. */
  readonly count: number
  readonly full: boolean
  readonly nextDueAt: number | undefined
}

export interface Due {
  readonly id: string
  /** Its first line, which tells whether anything has changed. */
  readonly line: string
  readonly head: Head
  readonly known: Known
  readonly unfinishedText: string
}

export async function readDue(
  server: Server,
  shard: number,
  definitions: Definitions,
  { lookaheadMs, offset, count, limit }: DueQuery,
): Promise<DueBatch> {
  const [now, found, texts, open, next] = listOf(
    await server.read(DUE, shard, [lookaheadMs, offset, count, limit, definitions.self]),
  )
  const [lines, unfinished] = [textsOf(texts).join('\n').split('\n'), unfinishedTexts(textsOf(open))]
  const due: Due[] = []
  for (let at = 0; at < Number(found); at += 1) {
    const [id = '', line = '', body = ''] = lines.slice(at * LINES, at * LINES + LINES)
    // It went away in this very moment.
    if (line === '') continue
    const head = toHead(line)
    const known = definitions.of(server, shard, body, head.overlap)
    due.push({ id, line, head, known, unfinishedText: unfinished.get(at + 1) ?? '' })
  }
  return { now: Number(now), due, count, full: Number(found) === count, nextDueAt: numberOf(String(next)) }
}

function unfinishedTexts(pairs: readonly string[]): ReadonlyMap<number, string> {
  const texts = new Map<number, string>()
  for (let at = 0; at + 1 < pairs.length; at += 2) texts.set(Number(pairs[at]), pairs[at + 1] ?? '')
  return texts
}

/** A due schedule as the planner sees it. Field by field: this is done once a tick. */
export function plannableOf({ id, head, known: { body } }: Due): Plannable {
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

const NONE: readonly Unfinished[] = []

export function unfinishedRuns(text: string): readonly Unfinished[] {
  if (text === '') return NONE
  return text.split(' ').map((each) => ({
    state: each.startsWith('X') ? 'running' : each.startsWith('W') ? 'waiting' : 'ready',
    started: each.charAt(1) === '1',
    ...(each.charAt(2) === '-' ? {} : { tick: Number(each.slice(2)) }),
  }))
}
