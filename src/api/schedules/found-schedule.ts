import { failure } from '../../core/errors.js'
import type { Schedule } from '../../core/schedules/schedule.js'

export function foundSchedule(id: string, schedule: Schedule | undefined): Schedule {
  return schedule ?? refuseMissing(id)
}

export function refuseMissing(id: string): never {
  throw failure('SCHEDULE_NOT_FOUND', `there is no schedule "${id}"`)
}
