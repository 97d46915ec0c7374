import { failure } from '../../core/errors.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../core/store.js'
import { type ScheduleView, scheduleView } from './schedule-view.js'

/** The schedule after the write, and the effect of the write. */
export type PutOutcome = ScheduleView & { readonly outcome: 'created' | 'updated' | 'unchanged' }

/** Returns the outcome. Throws on a conflict, because the caller's change was based on another version. */
export function putOutcome({ id, ifVersion }: ScheduleWrite, result: PutResult | undefined): PutOutcome {
  if (result === undefined || result.outcome === 'conflict') throw conflict(id, result?.schedule, ifVersion)
  return Object.assign(scheduleView(result.schedule), { outcome: result.outcome })
}

export function conflict(id: string, schedule: Schedule | undefined, ifVersion: number | undefined) {
  const is = schedule === undefined ? 'there is none' : `it has version ${schedule.version}`
  return failure(
    'VERSION_CONFLICT',
    `schedule "${id}" was to have version ${ifVersion}, but ${is}: read it again and repeat your change`,
  )
}
