import { isFinished } from '../../../core/runs/run.js'
import type { CancelResult } from '../../../core/store.js'
import type { Tx } from '../connection/tx.js'
import { endRun, findRun, requestCancel } from './transitions.js'

export function cancelRun(tx: Tx, id: string): CancelResult {
  const run = findRun(tx, id)
  if (run === undefined) return 'missing'
  if (isFinished(run)) return 'finished'
  if (run.state === 'running') {
    requestCancel(tx, run)
    return 'requested'
  }
  endRun(tx, run, 'cancelled')
  return 'cancelled'
}
