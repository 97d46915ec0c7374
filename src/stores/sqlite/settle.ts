import type { Outcome } from '../../core/run.js'
import type { Settlement, SettleResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { anyoneWaitsForALane, handOn } from './names.js'
import { type Ending, endCommitted, endRun, giveBack } from './run-endings.js'
import { loadRun, type RunRecord, runNumber, toText } from './run-row.js'
import type { Tx } from './tx.js'

/** How many attempts one transaction settles. */
const CHUNK = 500

export async function settleInSteps(file: SqliteFile, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const results: SettleResult[] = []
  for (let at = 0; at < settlements.length; at += CHUNK) {
    const step = settlements.slice(at, at + CHUNK)
    results.push(...(await file.write((tx) => settleRuns(tx, step))))
  }
  return results
}

function settleRuns(tx: Tx, settlements: readonly Settlement[]): SettleResult[] {
  const direct = !anyoneWaitsForALane(tx)
  const results = settlements.map((settlement) => settleRun(tx, settlement, direct))
  handOn(tx)
  return results
}

function settleRun(tx: Tx, { run: id, token, outcome }: Settlement, direct: boolean): SettleResult {
  const number = runNumber(id)
  if (number === undefined) return 'stale'
  if (direct && outcome.kind === 'succeeded' && succeed(tx, number, token, outcome)) return 'settled'
  const run = loadRun(tx, number)
  if (run === undefined) return 'stale'
  if (run.settledToken === token) return 'settled'
  if (!isCurrent(tx.db, run, token)) return 'stale'
  run.settledToken = token
  if (run.committed) endCommitted(tx, run)
  else applyOutcome(tx, run, outcome)
  return 'settled'
}

const SUCCEED = `update belfry_runs set state = 3, finished_at = ?, ended = ?, result = ?, error = null, settled_token = ?
  where id = ? and token = ? and state = 2 and keep = 0 and key is null and dedupe is null and committed = 0`

/** What most runs come to, in one statement: they succeed, are kept, and nothing waits for them. */
function succeed(
  { db, now, counters, wakes }: Tx,
  run: number,
  token: number,
  { result }: Outcome & { readonly kind: 'succeeded' },
): boolean {
  const ended = counters.nextEnded()
  if (db.run(SUCCEED, now, ended, result === undefined ? null : toText(result), token, run, token) > 0) {
    wakes.add('settled')
    return true
  }
  counters.forgetEnded(1)
  return false
}

const HAS_KEY = 'select 1 from belfry_leases where run = ? and token = ?'

/** A lease that ran out counts as held until somebody took it. */
export function isCurrent(db: Connection, run: RunRecord, token: number): boolean {
  if (run.state !== 'running' || run.token !== token) return false
  return run.key === undefined || db.get(HAS_KEY, run.id, token) !== undefined
}

function applyOutcome(tx: Tx, run: RunRecord, outcome: Outcome): void {
  const goesOn = outcome.kind === 'retry' || outcome.kind === 'released'
  if (outcome.kind === 'failed') run.failures += 1
  if (!goesOn) endRun(tx, run, outcome.kind, endingOf(outcome))
  else if (run.cancelRequested) endRun(tx, run, 'cancelled', endingOf(outcome))
  else if (outcome.kind === 'released') giveBack(tx, run, tx.now)
  else {
    run.failures += 1
    run.error = JSON.stringify(outcome.error)
    giveBack(tx, run, tx.now + outcome.delayMs)
  }
}

function endingOf(outcome: Outcome): Ending {
  if ('error' in outcome && outcome.error !== undefined) return { error: outcome.error }
  return outcome.kind === 'succeeded' && outcome.result !== undefined ? { result: toText(outcome.result) } : {}
}
