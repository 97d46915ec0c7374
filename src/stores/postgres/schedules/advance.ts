/** Records ticks: takes due schedules, plans them in this process, and writes the plans. `advance.sql` explains how. */
import { plannable } from '../../../core/schedules/schedule.js'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import type { Database, Transaction } from '../connection/database.js'
import { toUnfinished } from '../runs/run-codec.js'
import { changes, integer, milliseconds, optional, sqlFunction, texts } from '../schema/sql-function.js'
import source from './advance.sql'
import type { Definitions } from './definitions.js'
import { type Due, dueColumns, type Planned, progressRows, skipRows, tickRows } from './schedule-codec.js'

const takeDue = sqlFunction({
  name: 'take_due_schedules',
  source,
  takes: { scheduleLimit: integer, lookaheadMs: milliseconds },
  gives: dueColumns,
})

const nextDue = sqlFunction({
  name: 'next_due',
  source,
  takes: {},
  gives: { nowMs: integer, nextDueAt: optional(integer) },
})

const recordTicks = sqlFunction({
  name: 'record_ticks',
  source,
  takes: {
    progress: progressRows,
    ticks: tickRows,
    skips: skipRows,
    nowMs: integer,
    lastDue: integer,
    lastPlace: integer,
  },
  gives: { recorded: integer, nextDueAt: optional(integer), hints: changes, stale: texts },
})

/**
 * The statement is sent in one message with `begin`, which can have no parameters. So its numbers are part of the text.
 */
function takeDueSql({ limit, lookaheadMs }: AdvanceRequest): string {
  return takeDue.sql.replace('$1', String(Math.ceil(limit))).replace('$2', String(Math.ceil(lookaheadMs)))
}

export async function advanceSchedules(db: Database, definitions: Definitions, request: AdvanceRequest) {
  const { result, hints } = await db.transaction(
    takeDueSql(request),
    async (rows, tx) => {
      const dues: Due[] = rows.map(takeDue.read)
      const last = dues.at(-1)
      return last === undefined
        ? { result: await lookAhead(tx), hints: '{}' }
        : record(tx, dues, last, definitions, request)
    },
    { patience: 'prompt' },
  )
  db.announce(hints)
  return result
}

async function lookAhead(tx: Transaction): Promise<AdvanceResult> {
  const [row = []] = await tx.run(nextDue.sql, [])
  const { nowMs, nextDueAt } = nextDue.read(row)
  return { now: nowMs, schedules: 0, recorded: 0, skipped: 0, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
}

async function record(
  tx: Transaction,
  dues: readonly Due[],
  last: Due,
  definitions: Definitions,
  { plan, lookaheadMs }: AdvanceRequest,
) {
  await definitions.load(
    tx,
    dues.map(({ definition }) => definition),
  )
  const now = last.nowMs
  const planned = dues.map((due): Planned => {
    const definition = definitions.get(due.definition)
    const { key } = definition
    return {
      due,
      plan: plan(plannable({ ...due, definition }), toUnfinished(due.unfinished), now, now + lookaheadMs),
      key: key === undefined || key === 'unstamped' ? undefined : key.name,
    }
  })
  const skips = planned.flatMap(({ due, plan: { skips } }) => skips.map((skip) => ({ schedule: due.id, skip })))
  const args = {
    progress: planned,
    ticks: planned.flatMap(newTicks),
    skips,
    ...{ nowMs: now, lastDue: last.dueAt, lastPlace: last.place },
  }
  const [row = []] = await tx.run(recordTicks.sql, recordTicks.values(args))
  const { recorded, nextDueAt, hints, stale } = recordTicks.read(row)
  const skipped = skips
    .filter(({ schedule }) => !stale.includes(schedule))
    .reduce((sum, { skip: { count } }) => sum + count, 0)
  const counts = { now, schedules: dues.length, recorded, skipped }
  const result: AdvanceResult = nextDueAt === undefined ? counts : { ...counts, nextDueAt }
  return { result, hints }
}

/** Ticks up to the cursor are already recorded or skipped, so only later ones are new. */
function newTicks(planned: Planned) {
  return planned.plan.ticks.filter(({ at }) => at > planned.due.cursor).map((tick) => ({ ...planned, tick }))
}
