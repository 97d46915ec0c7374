/**
 * Recording ticks. The file has one writer at a time, so whoever is in the transaction has the due schedules to
 * himself; another finds them moved on. A large step takes several transactions, each bounded by schedules and ticks.
 */
import { applyPlan } from '../../core/declare.js'
import type { Plan, PlannedTick, Unfinished } from '../../core/plan.js'
import { plannable } from '../../core/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { handOn } from './names.js'
import { addSkip, makeWay, skipRun } from './run-endings.js'
import { insertRun, loadRun, runNumber, targetName, targetOptions } from './run-row.js'
import { moveSchedule, unclaimedTicks } from './schedule-changes.js'
import { type Definitions, SCHEDULES, type ScheduleRecord, type ScheduleRow } from './schedule-row.js'
import type { Tx } from './tx.js'

/** How many schedules one transaction takes, and after how many ticks it takes no more. */
const CHUNK = 250
const MAX_TICKS = 250

interface Step extends AdvanceResult {
  readonly more: boolean
  /** The last place in line when the first transaction began. */
  readonly queued: number
}

export async function advanceSchedules(
  file: SqliteFile,
  definitions: Definitions,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  const idle = await file.read((db, now) => nothingDue(db, now, request))
  if (idle !== undefined) return idle
  let [schedules, recorded, skipped] = [0, 0, 0]
  for (let queued: number | undefined; ; ) {
    const [line, limit] = [queued, request.limit - schedules]
    const step = await file.write((tx) => advanceStep(tx, definitions, request, limit, line))
    schedules += step.schedules
    recorded += step.recorded
    skipped += step.skipped
    queued = step.queued
    if (step.more && schedules < request.limit) continue
    const { now, nextDueAt } = step
    return { now, schedules, recorded, skipped, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
  }
}

const NEXT_DUE = 'select due_at from belfry_schedules where due_at is not null order by due_at limit 1'

function nextDue(db: Connection): { nextDueAt?: number } {
  const row = db.get<[number]>(NEXT_DUE)
  return row === undefined ? {} : { nextDueAt: row[0] }
}

/** Answers without a transaction when no schedule is due, which is what polls find. */
function nothingDue(db: Connection, now: number, { lookaheadMs }: AdvanceRequest): AdvanceResult | undefined {
  const next = nextDue(db)
  if (next.nextDueAt !== undefined && next.nextDueAt <= now + lookaheadMs) return undefined
  return { now, schedules: 0, recorded: 0, skipped: 0, ...next }
}

// One that is due again after its step stands behind the place where the line ended, and is not taken twice.
const TAKE = `${SCHEDULES} where s.due_at <= ? and s.queued <= ? order by s.due_at, s.queued limit ?`

function advanceStep(
  tx: Tx,
  definitions: Definitions,
  { plan, lookaheadMs }: AdvanceRequest,
  limit: number,
  line: number | undefined,
): Step {
  const { db, now, counters } = tx
  const queued = line ?? counters.queued
  const horizon = now + lookaheadMs
  const rows = db.all<ScheduleRow>(TAKE, horizon, queued, Math.min(limit, CHUNK))
  let [schedules, recorded, skipped] = [0, 0, 0]
  for (const row of rows) {
    if (recorded >= MAX_TICKS) break
    const record = definitions.record(db, row)
    const planned = plan(plannable(record.schedule), unfinishedRuns(tx, record), now, horizon)
    recorded += applyTicks(tx, record, planned)
    for (const range of planned.skips) {
      addSkip(tx, record.schedule.id, range)
      skipped += range.count
    }
    moveSchedule(tx, applyPlan(record.schedule, planned, now))
    schedules += 1
  }
  handOn(tx)
  const more = schedules < rows.length || rows.length === CHUNK
  return { now, schedules, recorded, skipped, ...nextDue(db), more, queued }
}

const OPEN = `select state, attempt, origin, tick from belfry_runs
  where schedule = ? and state < 3 and waits_for <> 2 and (engaged = 1 or ready_at <= ?) order by id limit ?`
const WAITING = `select state, attempt, origin, tick from belfry_runs
  where schedule = ? and state = 0 and waits_for = 2 order by id desc limit ?`
/** A planner that knows a thousand unfinished runs, and the newest that wait, knows enough. */
const ENOUGH = 1_000

/** A schedule that allows overlap does not ask. */
function unfinishedRuns({ db, now }: Tx, { schedule }: ScheduleRecord): Unfinished[] {
  if (schedule.definition.overlap === 'allow') return []
  type UnfinishedRow = [number, number, number, number | null]
  const open = db.all<UnfinishedRow>(OPEN, schedule.id, now, ENOUGH)
  const waiting = db.all<UnfinishedRow>(WAITING, schedule.id, ENOUGH)
  return [...open, ...[...waiting].reverse()].map(([state, attempt, origin, tick]) => ({
    state: state === 2 ? 'running' : state === 0 ? 'waiting' : 'ready',
    started: attempt > 0,
    ...(origin === 0 && tick !== null ? { tick } : {}),
  }))
}

function applyTicks(tx: Tx, record: ScheduleRecord, plan: Plan): number {
  const { id, cursor } = record.schedule
  if (plan.retractThrough !== undefined) retract(tx, id, plan.retractThrough)
  if (plan.cancelUnfinished) makeWay(tx, id)
  let recorded = 0
  // A tick is unique by its instant: while its run is known, and behind the cursor for ever.
  for (const tick of plan.ticks) if (tick.at > cursor && recordTick(tx, record, tick)) recorded += 1
  return recorded
}

function retract(tx: Tx, schedule: string, through: number): void {
  for (const { run: id, tick } of unclaimedTicks(tx, schedule)) {
    const run = tick <= through ? loadRun(tx, runNumber(id) ?? 0) : undefined
    if (run !== undefined) skipRun(tx, run, 'missed')
  }
}

function recordTick(tx: Tx, { schedule, payload }: ScheduleRecord, tick: PlannedTick): boolean {
  const { target, priority, keep, key } = schedule.definition
  if (tick.waits) tx.touchedLanes.add(schedule.id)
  const run = insertRun(tx, {
    target: targetName(target),
    options: targetOptions(target),
    origin: 'tick',
    schedule: schedule.id,
    tick: tick.at,
    backfill: null,
    payload,
    priority,
    keep,
    key,
    dedupe: null,
    dedupeMs: null,
    readyAt: tick.readyAt,
    startBy: tick.startBy ?? null,
    waits: tick.waits,
  })
  return run !== undefined
}
