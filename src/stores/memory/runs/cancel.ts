import { isFinished } from '../../../core/runs/run.js'
import type { CancelResult } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { endRun, requestCancel } from './transitions.js'

export function cancelRun(state: MemoryState, id: string): CancelResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'missing'
  if (isFinished(run)) return 'finished'
  if (run.state === 'running') {
    requestCancel(state, run)
    return 'requested'
  }
  endRun(state, run, 'cancelled')
  return 'cancelled'
}
