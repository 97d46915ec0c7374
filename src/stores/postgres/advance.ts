/**
 * Recording ticks: one short transaction a batch. It takes due schedules that nobody else is at, plans them here with the
 * database's now, and writes everything in one statement.
 *
 * - Two that advance at once: each skips the rows that the other holds.
 * - Crash or stop in between: the transaction is rolled back, by the server's own timeout if need be, and the schedules
 *   are as due as before.
 * - Crash after the commit, or a lost reply: cursors have moved, and a tick is unique by (schedule, instant) anyway.
 * - A run that a tick has to wait for ends meanwhile: those runs are held while the waiting one is written, so that
 *   either their ending sees it, or it sees their ending and goes on at once.
 */
import type { AdvanceRequest, AdvanceResult } from '../../core/store.js'
import type { Database, Row, Transaction } from './connection/database.js'
import type { Definitions } from './definitions.js'
import { toDue } from './due-schedule.js'
import { PlanWrites } from './plan-writes.js'
import { toUnfinished, unfinishedRuns } from './unfinished-runs.js'

/** Numbers only: the statement travels in one message with the `begin`, which can have no parameters. */
function takeDue(limit: number, lookaheadMs: number): string {
  return `select belfry.durable(); set local enable_seqscan = off; set local jit = off;
  select s.now_ms, case when s.minds_overlap then ${unfinishedRuns('s.id', 's.now_ms')} end, s.row, s.id, s.definition,
    s.anchor, s.cursor, s.remaining, s.due_at, s.place, s.minds_overlap from (
    select id, ctid as row, definition, anchor, cursor, remaining, due_at, place, minds_overlap,
      (select belfry.now_us() / 1000) as now_ms from belfry.schedules
    where due_at <= (select belfry.now_us() / 1000 + ${Math.ceil(lookaheadMs)})
    order by due_at, place limit ${Math.ceil(limit)} for update skip locked) s order by s.due_at, s.place`
}

const RECORD = `select recorded, next_due_at, wakes, array_to_json(nullif(stale, '{}')) from belfry.record_plans($1, $2, $3,
  $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)`
const LOOK = `select belfry.now_us() / 1000,
  (select due_at from belfry.schedules where due_at is not null order by due_at limit 1)`

export async function advanceSchedules(db: Database, definitions: Definitions, request: AdvanceRequest) {
  const { limit, lookaheadMs } = request
  const { result, wakes } = await db.transaction(takeDue(limit, lookaheadMs), async (rows, tx) => {
    if (rows.length === 0) return { result: await lookAround(tx), wakes: 0 }
    await definitions.load(
      tx,
      rows.map((row) => Number(row[4])),
    )
    return record(tx, rows, definitions, request)
  })
  db.announce(wakes)
  return result
}

async function lookAround(tx: Transaction): Promise<AdvanceResult> {
  const [row] = await tx.run(LOOK, [])
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  return { now: Number(row?.[0]), schedules: 0, recorded: 0, skipped: 0, ...nextDueAt }
}

async function record(tx: Transaction, rows: readonly Row[], definitions: Definitions, request: AdvanceRequest) {
  const now = Number(rows[0]?.[0])
  const writes = new PlanWrites(now)
  for (const row of rows) {
    const due = toDue(row)
    const unfinished = toUnfinished(due.unfinished)
    const plan = request.plan(definitions.plannable(due), unfinished, now, now + request.lookaheadMs)
    writes.add(due, plan, definitions.keyOf(due))
  }
  const last = rows.at(-1)
  const [row] = await tx.run(RECORD, [now, last?.[8], last?.[9], ...writes.arrays()])
  const due = row?.[1] ?? null
  const nextDueAt = due === null ? {} : { nextDueAt: Number(due) }
  const skipped = writes.skippedBut(JSON.parse(row?.[3] ?? '[]') as string[])
  const result: AdvanceResult = { now, schedules: rows.length, recorded: Number(row?.[0]), skipped, ...nextDueAt }
  return { result, wakes: Number(row?.[2]) }
}
