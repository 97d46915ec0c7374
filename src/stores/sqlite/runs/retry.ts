import { isFinished } from '../../../core/runs/run.js'
import type { RetryResult } from '../../../core/store.js'
import type { Tx } from '../connection/tx.js'
import { dedupeOf } from './dedupe.js'
import { findRun, reopenRun } from './transitions.js'

export function retryRun(tx: Tx, id: string): RetryResult {
  const run = findRun(tx, id)
  if (run === undefined) return 'missing'
  if (!isFinished(run) || run.state === 'succeeded') return 'refused'
  const { target, dedupe } = run
  const holder = dedupe === null ? undefined : dedupeOf(tx, { target, dedupe })
  if (holder !== undefined && holder.id !== run.id) return 'refused'
  reopenRun(tx, run)
  return 'ready'
}
