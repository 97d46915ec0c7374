import { isFinished } from '../../../core/runs/run.js'
import type { RetryResult } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { dedupeOf } from './dedupe.js'
import { reopenRun } from './transitions.js'

export function retryRun(state: MemoryState, id: string): RetryResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'missing'
  if (!isFinished(run) || run.state === 'succeeded') return 'refused'
  const same = run.dedupe === undefined ? undefined : dedupeOf(state, run.target, run.dedupe)
  if (same !== undefined && same.run !== run.id) return 'refused'
  reopenRun(state, run)
  return 'ready'
}
