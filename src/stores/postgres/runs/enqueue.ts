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

/** One transaction makes all of them, and must end long before a call is given up. */
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
 * Where others made way, attempts are to be cancelled and runs have ended, too. An `advance` passes over a schedule that is
 * locked, so tickers are to look again.
 */
function hintsOf(runs: readonly NewRun[]): readonly Wake[] {
  if (runs.every(({ overlap = 'allow' }) => overlap === 'allow')) return ['runs']
  const cancels = runs.some(({ overlap }) => overlap === 'cancel-running')
  return cancels ? ['runs', 'schedules', 'attempts', 'settled'] : ['runs', 'schedules']
}

/** Made twice, it is there once. */
function isUnique({ dedupe, backfill }: NewRun): boolean {
  return dedupe !== undefined || backfill !== undefined
}

/** Nothing can refuse it. */
export function isPlain({ dedupe, checkKey, origin, overlap = 'allow' }: NewRun): boolean {
  return dedupe === undefined && !checkKey && origin !== 'backfill' && overlap === 'allow'
}
