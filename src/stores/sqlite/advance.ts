/**
 * Recording ticks. The file has one writer at a time, so whoever is in the transaction has the due schedules to
 * himself; another finds them moved on. A large step takes several transactions, each bounded by what it takes.
 *
 * All ticks of a transaction are written by one statement, and all cursors by another: what a run is made of is in the
 * file already, and only what is new has to get there.
 */
import type { Plan, Unfinished } from '../../core/plan.js'
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { handOn } from './names.js'
import { addSkip, makeWay, skipRun } from './run-endings.js'
import { flag, loadRun, runNumber } from './run-write.js'
import { unclaimedTicks } from './schedule-changes.js'
import type { Definitions } from './schedule-row.js'
import type { Tx } from './tx.js'

/** How many schedules one transaction takes, and after how many ticks it takes no more. */
const CHUNK = 500
const MAX_TICKS = 500

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
const TAKE = `select seq, id, definition, anchor, cursor, remaining from belfry_schedules
  where due_at <= ? and queued <= ? order by due_at, queued limit ?`

type DueRow = [seq: number, id: string, definition: number, anchor: number, cursor: number, remaining: number | null]

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
  const due = db.all<DueRow>(TAKE, horizon, queued, Math.min(limit, CHUNK))
  const writes = new Writes(tx)
  let [schedules, skipped] = [0, 0]
  for (const [seq, id, definition, anchor, cursor, remaining] of due) {
    if (writes.ticks >= MAX_TICKS) break
    const schedule = definitions.plannable(db, definition, { id, anchor, cursor, remaining })
    const overlaps = schedule.overlap === 'allow'
    const unfinished = overlaps ? [] : unfinishedRuns(tx, id)
    const planned = plan(schedule, unfinished, now, horizon)
    makeRoom(tx, id, planned)
    writes.record(id, definition, overlaps, cursor, planned)
    for (const range of planned.skips) {
      addSkip(tx, id, range)
      skipped += range.count
    }
    writes.move(seq, cursor, planned)
    schedules += 1
  }
  const recorded = writes.flush()
  handOn(tx)
  const more = schedules < due.length || due.length === CHUNK
  return { now, schedules, recorded, skipped, ...nextDue(db), more, queued }
}

const OPEN = `select state, attempt, origin, tick from belfry_runs
  where schedule = ? and ended is null and waits_for <> 2 and unlisted = 0 and (engaged = 1 or ready_at <= ?) order by id limit ?`
const WAITING = `select state, attempt, origin, tick from belfry_runs
  where schedule = ? and state = 0 and waits_for = 2 order by id desc limit ?`
/** A planner that knows a thousand unfinished runs, and the newest that wait, knows enough. */
const ENOUGH = 1_000

function unfinishedRuns({ db, now }: Tx, schedule: string): Unfinished[] {
  type UnfinishedRow = [number, number, number, number | null]
  const open = db.all<UnfinishedRow>(OPEN, schedule, now, ENOUGH)
  const waiting = db.all<UnfinishedRow>(WAITING, schedule, ENOUGH)
  return [...open, ...[...waiting].reverse()].map(([state, attempt, origin, tick]) => ({
    state: state === 2 ? 'running' : state === 0 ? 'waiting' : 'ready',
    started: attempt > 0,
    ...(origin === 0 && tick !== null ? { tick } : {}),
  }))
}

/** Does what a plan says about earlier runs. */
function makeRoom(tx: Tx, schedule: string, { retractThrough, cancelUnfinished }: Plan): void {
  if (retractThrough !== undefined) retract(tx, schedule, retractThrough)
  if (cancelUnfinished) makeWay(tx, schedule)
}

function retract(tx: Tx, schedule: string, through: number): void {
  for (const { run: id, tick } of unclaimedTicks(tx, schedule)) {
    const run = tick <= through ? loadRun(tx, runNumber(id) ?? 0) : undefined
    if (run !== undefined) skipRun(tx, run, 'missed')
  }
}

// What most ticks are: ready at their instant, with no time to be too late at, and beside whatever else runs.
const RECORD_PLAIN = `insert into belfry_runs (target, options, origin, schedule, tick, slot, payload, priority, keep,
    key, key_limit, key_waits, unstamped, state, waits_for, engaged, unlisted, created_at, ready_at)
  select d.target, d.options, 0, d.schedule, t.value ->> 1, '', d.payload, d.priority, d.keep,
    d.key, d.key_limit, d.key_waits, d.unstamped, 1 - d.unstamped, d.unstamped, 1, 1 - d.unstamped, ?2, t.value ->> 1
  from json_each(?1) t cross join belfry_definitions d on d.id = t.value ->> 0 where true
  on conflict (schedule, tick, slot) where schedule is not null do nothing`

const RECORD = `insert into belfry_runs (target, options, origin, schedule, tick, slot, payload, priority, keep,
    key, key_limit, key_waits, unstamped, state, waits_for, engaged, unlisted, created_at, ready_at, start_by)
  select d.target, d.options, 0, d.schedule, t.value ->> 1, '', d.payload, d.priority, d.keep,
    d.key, d.key_limit, d.key_waits, d.unstamped, case when t.value ->> 4 or d.unstamped then 0 else 1 end,
    case when t.value ->> 4 then 2 else d.unstamped end, 1, (t.value ->> 5) > d.unstamped, ?2, t.value ->> 2, t.value ->> 3
  from json_each(?1) t cross join belfry_definitions d on d.id = t.value ->> 0 where true
  on conflict (schedule, tick, slot) where schedule is not null do nothing`

// What most cursors do: they move on, and the schedule is due again at its next tick.
const MOVE_PLAIN = `update belfry_schedules set cursor = v.cursor, next_at = null, due_at = v.due_at, queued = v.queued
  from (select value ->> 0 as seq, value ->> 1 as cursor, value ->> 2 as due_at, value ->> 3 as queued
    from json_each(?)) v
  where belfry_schedules.seq = v.seq`

const MOVE = `update belfry_schedules set cursor = v.cursor, remaining = v.remaining, next_at = v.next_at,
    due_at = v.due_at, queued = v.queued, finished_at = v.finished_at
  from (select value ->> 0 as seq, value ->> 1 as cursor, value ->> 2 as due_at, value ->> 3 as queued,
    value ->> 4 as next_at, value ->> 5 as remaining, value ->> 6 as finished_at from json_each(?)) v
  where belfry_schedules.seq = v.seq`

type Numbers = (number | null)[]

/** What one transaction writes of ticks and cursors. */
class Writes {
  readonly #tx: Tx
  readonly #ticks: Numbers[] = []
  #plainTicks = true
  readonly #moves: Numbers[] = []
  readonly #plainMoves: Numbers[] = []

  constructor(tx: Tx) {
    this.#tx = tx
  }

  get ticks(): number {
    return this.#ticks.length
  }

  record(schedule: string, definition: number, overlaps: boolean, cursor: number, { ticks }: Plan): void {
    for (const { at, readyAt, startBy, waits } of ticks) {
      // A tick is unique by its instant: while its run is known, and behind the cursor for ever.
      if (at <= cursor) continue
      const unlisted = overlaps && readyAt === at && !waits
      if (unlisted && startBy === undefined) this.#ticks.push([definition, at])
      else {
        this.#plainTicks = false
        this.#ticks.push([definition, at, readyAt, startBy ?? null, flag(waits), flag(unlisted)])
      }
      if (waits) this.#tx.touchedLanes.add(schedule)
    }
  }

  /** A plan made from an older reading moves nothing back: cursors only grow. */
  move(seq: number, before: number, { cursor, remaining, nextAt, dueAt }: Plan): void {
    if (cursor < before) return
    const queued = this.#tx.counters.nextQueued()
    if (remaining === undefined && nextAt !== undefined && dueAt === nextAt) {
      this.#plainMoves.push([seq, cursor, dueAt, queued])
      return
    }
    const finishedAt = nextAt === undefined ? this.#tx.now : null
    this.#moves.push([seq, cursor, dueAt ?? null, queued, nextAt ?? null, remaining ?? null, finishedAt])
  }

  /** Answers how many ticks were new. */
  flush(): number {
    const { db, now, wakes } = this.#tx
    if (this.#plainMoves.length > 0) db.run(MOVE_PLAIN, JSON.stringify(this.#plainMoves))
    if (this.#moves.length > 0) db.run(MOVE, JSON.stringify(this.#moves))
    wakes.add('schedules')
    if (this.#ticks.length === 0) return 0
    wakes.add('runs')
    // In one statement, because runs are numbered in the order of their schedules.
    if (this.#plainTicks) return db.run(RECORD_PLAIN, JSON.stringify(this.#ticks), now)
    return db.run(RECORD, JSON.stringify(this.#ticks.map(whole)), now)
  }
}

/** A plain tick in the form of the others. */
function whole(tick: Numbers): Numbers {
  const [definition = null, at = null] = tick
  return tick.length === 2 ? [definition, at, at, null, 0, 1] : tick
}
