import { decidePause, decideResume } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Tx } from '../connection/tx.js'
import { takeVersion, versionNow } from '../schema/counters.js'
import { getSchedule } from './list.js'
import { writeSchedule } from './put.js'
import { addSkip } from './skips.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

export function pauseSchedule(tx: Tx, id: string, note: string | undefined): Schedule | undefined {
  const before = getSchedule(tx, id)
  if (before === undefined) return undefined
  if (before.pausedAt !== undefined && before.pauseNote === note) return before
  const version = versionNow(tx)
  takeVersion(tx, version)
  const { schedule, takeBack } = decidePause(before, unclaimedTicks(tx, id), version, tx.now, note)
  takeBackTicks(tx, id, takeBack)
  writeSchedule(tx, schedule)
  return schedule
}

export function resumeSchedule(tx: Tx, id: string): Schedule | undefined {
  const before = getSchedule(tx, id)
  if (before?.pausedAt === undefined) return before
  const version = versionNow(tx)
  takeVersion(tx, version)
  const { schedule, skips } = decideResume(before, version, tx.now)
  for (const range of skips) addSkip(tx, id, range)
  writeSchedule(tx, schedule)
  return schedule
}
