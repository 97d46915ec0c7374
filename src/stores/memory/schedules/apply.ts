import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { putSchedules } from './put.js'
import { removeSchedules } from './remove.js'

export function applySchedules(
  state: MemoryState,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): PutResult[] {
  const results = putSchedules(state, writes)
  removeSchedules(state, removals)
  return results
}
