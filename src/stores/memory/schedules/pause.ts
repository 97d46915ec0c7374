import { decidePause, decideResume } from '../../../core/schedules/declare.js'
import { nextVersion } from '../../../core/schedules/next-version.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { MemoryState } from '../schema/state.js'
import { getSchedule } from './list.js'
import { writeSchedule } from './put.js'
import { addSkip } from './skips.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

export function pauseSchedule(state: MemoryState, id: string, note: string | undefined): Schedule | undefined {
  const record = state.schedules.get(id)
  if (record === undefined) return undefined
  const { lane, schedule: before } = record
  if (before.pausedAt !== undefined && before.pauseNote === note) return getSchedule(state, id)
  state.lastVersion = nextVersion(state.lastVersion, state.now)
  const { schedule, takeBack } = decidePause(before, unclaimedTicks(lane), state.lastVersion, state.now, note)
  takeBackTicks(state, lane, takeBack)
  return writeSchedule(state, schedule)
}

export function resumeSchedule(state: MemoryState, id: string): Schedule | undefined {
  const record = state.schedules.get(id)
  if (record?.schedule.pausedAt === undefined) return getSchedule(state, id)
  state.lastVersion = nextVersion(state.lastVersion, state.now)
  const { schedule, skips } = decideResume(record.schedule, state.lastVersion, state.now)
  for (const range of skips) addSkip(state, record.lane, range)
  return writeSchedule(state, schedule)
}
