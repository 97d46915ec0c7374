import { isSoon } from '../../../core/connection/hint.js'
import { decidePut } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { takeVersion, versionNow } from '../schema/counters.js'
import { getSchedule } from './list.js'
import source from './put.sql'
import { type ScheduleColumns, scheduleColumns } from './schedule-codec.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

/** All or nothing: an error in one write rolls back all of them. */
export function putSchedules(tx: Tx, writes: readonly ScheduleWrite[]): Steps<PutResult[]> {
  return stepwise(writes, (write) => putSchedule(tx, write))
}

function putSchedule(tx: Tx, { id, definition, ifVersion }: ScheduleWrite): PutResult {
  const existing = getSchedule(tx, id)
  if (ifVersion !== undefined && ifVersion !== (existing?.version ?? 0)) {
    return { outcome: 'conflict', schedule: existing }
  }
  const unclaimed = existing === undefined ? [] : unclaimedTicks(tx, id)
  const decision = decidePut(id, definition, existing, unclaimed, versionNow(tx), tx.now)
  if (decision.outcome === 'unchanged') return decision
  takeVersion(tx, decision.schedule.version)
  takeBackTicks(tx, id, decision.takeBack)
  writeSchedule(tx, decision.schedule)
  return { outcome: decision.outcome, schedule: decision.schedule }
}

const replaceSchedule = change<ScheduleColumns>(source, 'writeSchedule')

export function writeSchedule(tx: Tx, schedule: Schedule): void {
  if (isSoon(schedule.dueAt, tx.now)) tx.wakes.add('schedules')
  replaceSchedule(tx, scheduleColumns(schedule))
}
