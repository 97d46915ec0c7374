/**
 * Recording ticks. One script reads a batch of due schedules, the planner plans them here, and another script writes
 * ticks, skips and cursors. What a plan rests on travels with it and is compared before anything of it is written: the
 * schedule's first line, with its version and its cursor, and, where ticks may not overlap, its unfinished runs. A schedule
 * that another instance has moved on meanwhile is left alone. So a tick is recorded once, however many instances plan it.
 */
import { setImmediate } from 'node:timers/promises'
import type { Mutable } from '../../../core/mutable.js'
import type { Plan, Plannable, Unfinished } from '../../../core/schedules/plan.js'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import { peekDue } from '../cluster/peek.js'
import { flag, listOf, luaScript, maybe, named, number, type Shape, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { skipRange } from './change.js'
import type { Definitions, Known, Template } from './definitions.js'
import dueSource from './read-due.lua'
import recordSource from './record-ticks.lua'
import { goesAt, type Head, movingFrom, movingText, toHead } from './schedule-codec.js'

const readDueScript = luaScript({
  name: 'schedules/read-due',
  source: dueSource,
  takes: { planner: text, lookaheadMs: number, limit: number, behind: number },
  gives: {
    now: number,
    found: number,
    definitions: listOf(text),
    due: listOf(
      named({
        id: text,
        /** Its first line, which tells whether anything has changed. */
        line: text,
        /** Its place among the definitions, from 1 on. */
        definition: number,
        /** Where ticks may not overlap. */
        unfinished: maybe(text),
      }),
    ),
    nextDueAt: maybe(number),
  },
})

const templates: Shape<readonly Template[]> = {
  read: (answer) => answer as readonly Template[],
  names: ['run', 'options'],
}

export const recordTicksScript = luaScript({
  name: 'schedules/record-ticks',
  source: recordSource,
  writes: true,
  takes: {
    startFrom: number,
    planner: text,
    /** This is the last batch. */
    removesMark: flag,
    templates,
    plans: listOf(
      named({
        id: text,
        /** The schedule's first line before and after. */
        from: text,
        to: text,
        unfinished: maybe(text),
        /** Its place among the templates, from 1 on. */
        template: number,
        dueAt: maybe(number),
        goesAt: maybe(number),
        retractThrough: maybe(number),
        cancelsUnfinished: maybe(flag),
        ticks: listOf(
          named({ at: number, readyAt: number, startBy: maybe(number), mayBeKnown: maybe(flag), waits: maybe(flag) }),
        ),
        skips: maybe(listOf(skipRange)),
      }),
    ),
  },
  gives: { recorded: number, skipped: number, nextDueAt: maybe(number) },
})

/** How many schedules are read at a time, and how many of them are written by one script. */
const READ_BATCH = 1_000
const WRITE_BATCH = 250

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
  const after = results.length === 0 ? { now, nextDueAt } : await peekDue(server, 0, 0)
  return {
    now: after.now,
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
  { lookaheadMs, limit, plan }: AdvanceRequest,
): Promise<AdvanceResult> {
  const planner = definitions.self
  const seen = new Set<string>()
  let [now, recorded, skipped, isLast] = [0, 0, 0, false]
  let nextDueAt: number | undefined

  const write = async (due: readonly Due[], removesMark: boolean) => {
    const used = [...new Set(due.map(({ known }) => known.template))]
    const plans = due.map((each) => {
      const made = plan(plannableOf(each), unfinishedRuns(each.unfinished), now, now + lookaheadMs)
      return { ...planned(each, made, now), template: used.indexOf(each.known.template) + 1 }
    })
    const startFrom = server.numbersFrom()
    const written = await server.call(recordTicksScript, shard, {
      startFrom,
      planner,
      removesMark,
      templates: used,
      plans,
    })
    recorded += written.recorded
    skipped += written.skipped
    nextDueAt = written.nextDueAt
  }

  while (!isLast) {
    const count = Math.min(READ_BATCH, limit - seen.size)
    const read = await readDue(server, shard, definitions, { planner, lookaheadMs, limit: count, behind: limit })
    // One that is due again after its step is not taken twice.
    const due = read.due.filter(({ id }) => !seen.has(id))
    for (const { id } of due) seen.add(id)
    now = read.now
    nextDueAt = read.nextDueAt
    isLast = due.length === 0 || read.found < count || seen.size >= limit
    const writes: Promise<void>[] = []
    for (let from = 0; from < due.length; from += WRITE_BATCH) {
      const to = from + WRITE_BATCH
      const writing = write(due.slice(from, to), isLast && to >= due.length)
      // A failure is thrown once all are under way.
      writing.catch(() => {})
      writes.push(writing)
      // The client sends it now, so that the server writes it while the next is planned.
      await setImmediate()
    }
    await Promise.all(writes)
  }
  return { now, schedules: seen.size, recorded, skipped, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

interface Due {
  readonly id: string
  readonly line: string
  readonly head: Head
  readonly known: Known
  readonly unfinished: string | undefined
}

async function readDue(
  server: Server,
  shard: number,
  definitions: Definitions,
  takes: Parameters<typeof readDueScript.argument>[0],
) {
  const read = await server.call(readDueScript, shard, takes)
  const due = read.due.map(({ id, line, definition, unfinished }): Due => {
    const head = toHead(line)
    const known = definitions.of(server, shard, read.definitions[definition - 1] ?? '', head.overlap)
    return { id, line, head, known, unfinished }
  })
  return { ...read, due }
}

/** A due schedule as the planner sees it. */
function plannableOf({ id, head, known: { body } }: Due): Plannable {
  const { anchor, cursor, overlap, remaining, pausedAt } = head
  const { timeline, startsAt, endsAt, jitterMs, missed, deadlineMs } = body
  return {
    ...{ id, timeline, anchor, cursor, overlap, missed, jitterMs },
    ...(startsAt === undefined ? {} : { startsAt }),
    ...(endsAt === undefined ? {} : { endsAt }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(remaining === undefined ? {} : { remaining }),
    ...(pausedAt === undefined ? {} : { pausedAt }),
  }
}

/** As `unfinished.lua` writes them: `running:begun:1700000000000`. */
function unfinishedRuns(words = ''): readonly Unfinished[] {
  if (words === '') return []
  return words.split(' ').map((each) => {
    const [state, started, tick = '-'] = each.split(':')
    const run = { state: state as Unfinished['state'], started: started === 'begun' }
    return tick === '-' ? run : { ...run, tick: Number(tick) }
  })
}

/** What does not apply is left out of the message. */
function planned({ id, line, head, known, unfinished }: Due, plan: Plan, now: number) {
  // A plan made from an older reading moves nothing back: cursors only grow.
  const moved = plan.cursor < head.cursor ? head : movedBy(head, plan, now)
  const { dueAt, finishedAt } = moved
  return {
    ...{ id, from: line, to: line.slice(0, movingFrom(line)) + movingText(moved), unfinished, dueAt },
    goesAt: finishedAt === undefined ? undefined : goesAt({ definition: known.body, finishedAt }),
    retractThrough: plan.retractThrough,
    cancelsUnfinished: plan.cancelUnfinished || undefined,
    // A tick is unique by its instant: while its run is known, and behind the cursor for ever.
    ticks: plan.ticks
      .filter(({ at }) => at > head.cursor)
      .map(({ at, readyAt, startBy, waits }) => ({
        ...{ at, readyAt, startBy },
        mayBeKnown: at <= head.createdAt || undefined,
        waits: waits || undefined,
      })),
    skips: plan.skips.length === 0 ? undefined : plan.skips,
  }
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
