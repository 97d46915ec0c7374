import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import type { EnqueueResult, Wake } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { callAll, sqlFunction, text } from '../schema/sql-function.js'
import source from './enqueue.sql'
import { newRuns } from './run-codec.js'

const enqueue = sqlFunction({
  name: 'enqueue_runs',
  source,
  takes: { newRuns },
  gives: { outcome: text, run: text },
})

/** The most runs of one call. One transaction creates them all, and must end long before the call's time limit. */
const MOST = 10_000

export function checkCount(runs: readonly NewRun[]): void {
  if (runs.length <= MOST) return
  throw failure(
    'OPTION_INVALID',
    `${runs.length} runs at once are too many for one transaction: enqueue at most ${MOST} in one call`,
  )
}

export async function enqueueRuns(db: Database, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  if (runs.length === 0) return []
  checkCount(runs)
  const results = await callAll(
    db,
    enqueue,
    { newRuns: runs },
    { repeatable: runs.every(isUnique), patience: 'patient' },
  )
  db.announce(hintsOf(runs))
  return results as EnqueueResult[]
}

/**
 * With `cancel-running`, other runs may have ended or been asked to cancel. With any other overlap policy than `allow`,
 * the schedule was locked, and an `advance` at that moment skipped it; the hint `schedules` makes instances advance
 * again.
 */
function hintsOf(runs: readonly NewRun[]): readonly Wake[] {
  if (runs.every(({ overlap = 'allow' }) => overlap === 'allow')) return ['runs']
  const cancels = runs.some(({ overlap }) => overlap === 'cancel-running')
  return cancels ? ['runs', 'schedules', 'attempts', 'settled'] : ['runs', 'schedules']
}

/** Whether enqueueing the run twice creates only one. */
function isUnique({ dedupe, backfill }: NewRun): boolean {
  return dedupe !== undefined || backfill !== undefined
}

/** Whether nothing can refuse the run, neither a key nor an overlap policy. */
export function isPlain({ dedupe, checkKey, origin, overlap = 'allow' }: NewRun): boolean {
  return dedupe === undefined && !checkKey && origin !== 'backfill' && overlap === 'allow'
}
