import { decidePause, decideResume, type TakeBack } from '../../../core/schedules/declare.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import { shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { change, type Found, NO_TICKS } from './change.js'

/** Changes one schedule. Returns the changed schedule, or the schedule as it is if `decide` returns undefined. */
function changeOne(
  server: Server,
  id: string,
  decide: (found: Found, schedule: Schedule, now: number) => { schedule: Schedule; takeBack: TakeBack } | undefined,
): Promise<Schedule | undefined> {
  return change<Schedule | undefined>(server, shardOf(id, server.shards), [id], ([found], now) => {
    const decision = found?.schedule === undefined ? undefined : decide(found, found.schedule, now)
    if (found === undefined || decision === undefined) return { changes: [], result: () => found?.schedule }
    const { schedule, takeBack } = decision
    return {
      changes: [{ found, schedule, place: 1, takeBack }],
      result: (versionsFrom) => ({ ...schedule, version: versionsFrom + 1 }),
    }
  })
}

export function pauseSchedule(server: Server, id: string, note: string | undefined): Promise<Schedule | undefined> {
  return changeOne(server, id, ({ unclaimed }, schedule, now) => {
    if (schedule.pausedAt !== undefined && schedule.pauseNote === note) return undefined
    return decidePause(schedule, unclaimed, 0, now, note)
  })
}

export function resumeSchedule(server: Server, id: string): Promise<Schedule | undefined> {
  return changeOne(server, id, (_, before, now) => {
    if (before.pausedAt === undefined) return undefined
    const { schedule, skips } = decideResume(before, 0, now)
    return { schedule, takeBack: { ...NO_TICKS, unrecorded: skips } }
  })
}
