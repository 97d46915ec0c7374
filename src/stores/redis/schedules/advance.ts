/**
 * Records ticks. One script reads a batch of due schedules, the planner plans them in this process, and another script
 * writes ticks, skips and cursors. Each plan carries what it was made from: the schedule's first line, which has
 * version and cursor, and the schedule's unfinished runs, unless its ticks may overlap. The writing script compares
 * both first, and drops the plan if another instance has changed the schedule meanwhile. So a tick is recorded once,
 * however many instances plan it.
 */
import { setImmediate } from 'node:timers/promises'
import { targetOptions } from '../../../core/runs/stored-text.js'
import { applyPlan } from '../../../core/schedules/declare.js'
import type { Unfinished } from '../../../core/schedules/plan.js'
import { plannable } from '../../../core/schedules/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import { nextOfAll, peekDue } from '../cluster/peek.js'
import { Damage, keyElsewhere } from '../cluster/shards.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { madeRun, madeRunShape } from '../runs/run-codec.js'
import { skipRange } from './change.js'
import dueSource from './read-due.lua'
import recordSource from './record-ticks.lua'
import { firstLine, goesAt, toSchedule } from './schedule-codec.js'

const readDueScript = luaScript({
  name: 'schedules/read-due',
  source: dueSource,
  takes: { planner: text, lookaheadMs: number, limit: number, behind: number },
  gives: {
    now: number,
    found: number,
    due: listOf(
      named({
        id: text,
        /** The first two lines of the schedule's text. */
        text,
        /** The unfinished runs of the schedule. Absent if its ticks may overlap. */
        unfinished: maybe(text),
      }),
    ),
    nextDueAt: maybe(number),
  },
})

export const recordTicksScript = luaScript({
  name: 'schedules/record-ticks',
  source: recordSource,
  writes: true,
  takes: {
    startFrom: number,
    planner: text,
    /** True for the last batch: it removes the planner's mark (read-due.lua). */
    removesMark: flag,
    plans: listOf(
      named({
        id: text,
        /** The schedule's first line before and after the plan. */
        from: text,
        to: text,
        unfinished: maybe(text),
        dueAt: maybe(number),
        goesAt: maybe(number),
        retractThrough: maybe(number),
        cancelsUnfinished: maybe(flag),
        /** The fields that the runs of all ticks have in common. */
        run: madeRunShape,
        options: text,
        ticks: listOf(
          named({
            ...{ at: number, readyAt: number, startBy: maybe(number), byDeadline: maybe(flag) },
            ...{ mayBeKnown: maybe(flag), waits: maybe(flag) },
          }),
        ),
        skips: maybe(listOf(skipRange)),
      }),
    ),
  },
  gives: { recorded: number, skipped: number, nextDueAt: maybe(number) },
})

/** How many schedules one script reads, and how many of them one script writes. */
const READ_BATCH = 1_000
const WRITE_BATCH = 250

/** `planner` identifies this process among those that plan concurrently. */
export async function advanceSchedules(
  server: Server,
  planner: string,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  if (server.shards === 1) return advanceShard(server, 0, planner, request)
  const damage = new Damage()
  const peeks = await peekDue(server, request.lookaheadMs, request.limit, damage)
  const steps = await Promise.all(
    peeks.map(({ share, ...idle }, shard) => {
      const nothing: AdvanceResult = { schedules: 0, recorded: 0, skipped: 0, ...idle }
      if (share === 0) return nothing
      return damage.spare(advanceShard(server, shard, planner, { ...request, limit: share }), nothing)
    }),
  )
  const nextDueAt = nextOfAll(
    peeks,
    steps.map((step) => step.nextDueAt),
  )
  const sum = (count: 'schedules' | 'recorded' | 'skipped') => steps.reduce((all, step) => all + step[count], 0)
  const counts = { schedules: sum('schedules'), recorded: sum('recorded'), skipped: sum('skipped') }
  const now = Math.max(...steps.map((step) => step.now))
  return { now, ...counts, ...(nextDueAt === undefined ? {} : { nextDueAt }), ...damage.found }
}

async function advanceShard(
  server: Server,
  shard: number,
  planner: string,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  const { lookaheadMs, limit } = request
  const seen = new Set<string>()
  let [now, recorded, skipped, isLast] = [0, 0, 0, false]
  let nextDueAt: number | undefined

  const write = async (due: readonly Due[], removesMark: boolean) => {
    const plans = due.map((each) => planned(server, shard, each, request, now))
    const startFrom = server.numbersFrom()
    const written = await server.call(recordTicksScript, shard, { startFrom, planner, removesMark, plans })
    recorded += written.recorded
    skipped += written.skipped
    nextDueAt = written.nextDueAt
  }

  while (!isLast) {
    const count = Math.min(READ_BATCH, limit - seen.size)
    const read = await server.call(readDueScript, shard, { planner, lookaheadMs, limit: count, behind: limit })
    // A schedule may be due again right after its ticks were recorded. It is then left to the next call.
    const due = read.due.filter(({ id }) => !seen.has(id))
    for (const { id } of due) seen.add(id)
    now = read.now
    nextDueAt = read.nextDueAt
    isLast = due.length === 0 || read.found < count || seen.size >= limit
    const writes: Promise<void>[] = []
    for (let from = 0; from < due.length; from += WRITE_BATCH) {
      const to = from + WRITE_BATCH
      const writing = write(due.slice(from, to), isLast && to >= due.length)
      // `Promise.all` throws the failure, after all writes have been sent.
      writing.catch(() => {})
      writes.push(writing)
      // Lets the client send this write now, so that the server executes it while the next one is planned.
      await setImmediate()
    }
    await Promise.all(writes)
  }
  return { now, schedules: seen.size, recorded, skipped, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

interface Due {
  readonly id: string
  readonly text: string
  readonly unfinished?: string
}

/**
 * Plans a schedule, and returns the plan as record-ticks.lua takes it. Undefined fields are left out of the message.
 */
function planned(server: Server, shard: number, due: Due, { plan, lookaheadMs }: AdvanceRequest, now: number) {
  const { id, unfinished } = due
  const schedule = toSchedule(id, due.text)
  const made = plan(plannable(schedule), unfinishedRuns(unfinished), now, now + lookaheadMs)
  const moved = applyPlan(schedule, made, now)
  const { target, priority, keep, key } = schedule.definition
  const run = { origin: 'tick', schedule: id, target, priority, keep, key } as const
  return {
    id,
    from: due.text.slice(0, due.text.indexOf('\n')),
    to: firstLine(moved),
    unfinished,
    dueAt: moved.dueAt,
    goesAt: goesAt(moved),
    retractThrough: made.retractThrough,
    cancelsUnfinished: made.cancelUnfinished,
    run: madeRun(run, keyElsewhere(server, shard, key)),
    options: targetOptions(target) ?? '',
    // A tick is recorded once for each instant. Instants up to the cursor are already recorded. `mayBeKnown` makes the
    // script look for the run of a removed schedule with the same id.
    ticks: made.ticks
      .filter(({ at }) => at > schedule.cursor)
      .map(({ at, readyAt, startBy, byDeadline, waits }) => ({
        at,
        readyAt,
        startBy,
        byDeadline,
        mayBeKnown: at <= schedule.createdAt || undefined,
        waits: waits || undefined,
      })),
    skips: made.skips.length === 0 ? undefined : made.skips,
  }
}

/** Parses the unfinished runs as `overlap.lua` writes them, such as `running:begun:1700000000000`. */
function unfinishedRuns(words = ''): readonly Unfinished[] {
  if (words === '') return []
  return words.split(' ').map((each) => {
    const [state, started, tick = '-'] = each.split(':')
    const run = { state: state as Unfinished['state'], started: started === 'begun' }
    return tick === '-' ? run : { ...run, tick: Number(tick) }
  })
}
