import { isSoon } from '../../../core/connection/hint.js'
import { decidePut } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { nextNumber, takeVersion, versionNow } from '../schema/counters.js'
import { getSchedule } from './list.js'
import source from './put.sql'
import { type ScheduleColumns, scheduleColumns } from './schedule-codec.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

/** All or nothing: an error in one write rolls back all of them. */
export function putSchedules(tx: Tx, writes: readonly ScheduleWrite[]): Steps<PutResult[]> {
  return stepwise(writes, (write) => putSchedule(tx, write))
}

function putSchedule(tx: Tx, { id, definition, ifVersion }: ScheduleWrite): PutResult {
  const { db, now } = tx
  const existing = getSchedule(tx, id)
  if (ifVersion !== undefined && ifVersion !== (existing?.version ?? 0)) {
    return { outcome: 'conflict', schedule: existing }
  }
  const unclaimed = existing === undefined ? [] : unclaimedTicks(tx, id)
  const decision = decidePut(id, definition, existing, unclaimed, versionNow(tx), now)
  if (decision.outcome === 'unchanged') return decision
  takeVersion(db, decision.schedule.version)
  takeBackTicks(tx, id, decision.takeBack)
  writeSchedule(tx, decision.schedule)
  return { outcome: decision.outcome, schedule: decision.schedule }
}

const writeStatement = statement<ScheduleColumns>(source, 'writeSchedule')

export function writeSchedule({ db, now, wakes }: Tx, schedule: Schedule): void {
  if (isSoon(schedule.dueAt, now)) wakes.add('schedules')
  db.run(writeStatement, scheduleColumns(schedule, nextNumber(db, 'due line')))
}
