/**
 * Recording ticks. The file has one writer at a time, so a transaction has the due schedules to itself; the next one finds
 * their cursors moved. A large step takes several transactions.
 */
import type { Plan, Unfinished } from '../../../core/schedules/plan.js'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { change, type Nothing, row, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { makeWay, unfinishedRuns } from '../runs/enqueue.js'
import { skipRun } from '../runs/transitions.js'
import { lastVersion, takeVersion, versionNow } from '../schema/counters.js'
import source from './advance.sql'
import { type DueRow, toPlannable } from './schedule-codec.js'
import { addSkip } from './skips.js'
import { unclaimedRuns } from './take-back.js'

/** How many schedules one transaction takes, and after how many ticks it takes no more. */
const STEP = 500
const MAX_TICKS = 500

export async function advanceSchedules(file: SqliteFile, request: AdvanceRequest): Promise<AdvanceResult> {
  const idle = await file.read((snapshot) => nothingDue(snapshot, request))
  if (idle !== undefined) return idle
  let [schedules, recorded, skipped] = [0, 0, 0]
  for (let lineEnd: number | undefined; ; ) {
    const [end, limit] = [lineEnd, request.limit - schedules]
    const step = await file.write((tx) => advanceStep(tx, request, limit, end))
    schedules += step.schedules
    recorded += step.recorded
    skipped += step.skipped
    lineEnd = step.lineEnd
    if (step.isMore && schedules < request.limit) continue
    return { now: step.now, schedules, recorded, skipped, ...step.next }
  }
}

const nextDue = row<Nothing, { due_at: number }>(source, 'nextDue')

function nextDueAt(snapshot: Snapshot): { nextDueAt?: number } {
  const row = nextDue(snapshot, {})
  return row === undefined ? {} : { nextDueAt: row.due_at }
}

/** Answers without a transaction when no schedule is due, as for most polls. */
function nothingDue(snapshot: Snapshot, { lookaheadMs }: AdvanceRequest): AdvanceResult | undefined {
  const { now } = snapshot
  const next = nextDueAt(snapshot)
  if (next.nextDueAt !== undefined && next.nextDueAt <= now + lookaheadMs) return undefined
  return { now, schedules: 0, recorded: 0, skipped: 0, ...next }
}

type Due = { horizon: number; lineEnd: number; limit: number }
const dueSchedules = rows<Due, DueRow>(source, 'dueSchedules')

/** One transaction. `end`: the last place in the line of due schedules when the first transaction began. */
function advanceStep(tx: Tx, { plan, lookaheadMs }: AdvanceRequest, most: number, end: number | undefined) {
  const { now } = tx
  const lineEnd = end ?? lastVersion(tx)
  const horizon = now + lookaheadMs
  const due = dueSchedules(tx, { horizon, lineEnd, limit: Math.min(most, STEP) })
  const ticks: TickColumns[] = []
  const moves: MoveColumns[] = []
  let [schedules, skipped] = [0, 0]
  for (const row of due) {
    if (ticks.length >= MAX_TICKS) break
    const schedule = toPlannable(row)
    const unfinished = schedule.overlap === 'allow' ? [] : unfinishedOf(tx, row.id)
    const planned = plan(schedule, unfinished, now, horizon)
    makeRoom(tx, row.id, planned)
    ticks.push(...ticksOf(row, planned))
    // A plan that was made from an older read must not move the cursor back.
    if (planned.cursor >= row.cursor) moves.push(moveOf(row, planned))
    for (const range of planned.skips) {
      addSkip(tx, row.id, range)
      skipped += range.count
    }
    if (planned.ticks.some(({ waits }) => waits)) tx.freedSchedules.add(row.id)
    schedules += 1
  }
  const recorded = write(tx, ticks, moves)
  const isMore = schedules < due.length || due.length === STEP
  return { now, schedules, recorded, skipped, lineEnd, isMore, next: nextDueAt(tx) }
}

/** How many unfinished runs the planner gets at most, and how many of the newest that wait. */
const ENOUGH = 1_000

function unfinishedOf(tx: Tx, schedule: string): Unfinished[] {
  return unfinishedRuns(tx, schedule, ENOUGH).map(({ state, attempt, origin, tick }) => ({
    state: state as Unfinished['state'],
    started: attempt > 0,
    ...(origin === 'tick' && tick !== null ? { tick } : {}),
  }))
}

/** Carries out what a plan says about earlier runs. */
function makeRoom(tx: Tx, schedule: string, { retractThrough, cancelUnfinished }: Plan): void {
  for (const run of retractThrough === undefined ? [] : unclaimedRuns(tx, schedule)) {
    if (run.tick !== null && run.tick <= (retractThrough ?? run.tick)) skipRun(tx, run, 'missed')
  }
  if (cancelUnfinished) makeWay(tx, schedule)
}

/** A member of the list that `recordTicks` reads. */
type TickColumns = {
  schedule: string
  tick: number
  readyAt: number
  startBy: number | undefined
  byDeadline: true | undefined
  waits: boolean
}

/** No instant is recorded twice: the cursor excludes all up to it, and the unique index the runs after it. */
function ticksOf({ id, cursor }: DueRow, { ticks }: Plan): TickColumns[] {
  return ticks
    .filter(({ at }) => at > cursor)
    .map(({ at, readyAt, startBy, byDeadline, waits }) => ({
      ...{ schedule: id, tick: at, readyAt, startBy, byDeadline, waits },
    }))
}

/** A member of the list that `moveCursors` reads; what is undefined is null there. */
type MoveColumns = ReturnType<typeof moveOf>

function moveOf({ id }: DueRow, { cursor, remaining, nextAt, dueAt }: Plan) {
  return { schedule: id, cursor, remaining, nextAt, dueAt }
}

// One statement for all ticks of a transaction: with one for each, bench `ticks` takes twice as long.
const recordTicks = change<{ ticks: string }>(source, 'recordTicks')
const moveCursors = change<{ moves: string; line: number }>(source, 'moveCursors')

/** Returns how many ticks were new. */
function write(tx: Tx, ticks: readonly TickColumns[], moves: readonly MoveColumns[]): number {
  tx.wakes.add('schedules')
  if (moves.length > 0) {
    const line = versionNow(tx)
    takeVersion(tx, line + moves.length - 1)
    moveCursors(tx, { moves: JSON.stringify(moves), line })
  }
  if (ticks.length === 0) return 0
  tx.wakes.add('runs')
  return recordTicks(tx, { ticks: JSON.stringify(ticks) })
}
