import type { Json } from '../../../core/checks/json.js'
import type { Outcome } from '../../../core/runs/run.js'
import { runNumber } from '../../../core/runs/run-id.js'
import { toText } from '../../../core/runs/stored-text.js'
import type { Settlement, SettleResult } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import type { Tx } from '../connection/tx.js'
import type { RunRow } from './run-codec.js'
import {
  type Ending,
  endCommitted,
  endRun,
  findRun,
  giveBack,
  isCurrent,
  type Success,
  succeedPlain,
} from './transitions.js'

export async function settleRuns(file: SqliteFile, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const results: SettleResult[] = []
  while (results.length < settlements.length) {
    const step = settlements.slice(results.length, results.length + file.share)
    results.push(...(await file.write((tx) => settleStep(tx, step))))
  }
  return results
}

/** Most attempts have succeeded, and their end frees nothing: these end together. */
function settleStep(tx: Tx, settlements: readonly Settlement[]): SettleResult[] {
  const ended = succeedPlain(tx, settlements.flatMap(successOf))
  return settlements.map((settlement) =>
    ended.get(runNumber(settlement.run)) === settlement.token ? 'settled' : settleRun(tx, settlement),
  )
}

function successOf({ run: id, token, outcome }: Settlement): Success[] {
  return outcome.kind === 'succeeded' ? [{ run: runNumber(id), token, result: resultOf(outcome) }] : []
}

function settleRun(tx: Tx, { run: id, token, outcome }: Settlement): SettleResult {
  const run = findRun(tx, id)
  if (run === undefined) return 'stale'
  // The first reply was lost.
  if (run.settled_token === token) return 'settled'
  if (!isCurrent(tx, run, token)) return 'stale'
  run.settled_token = token
  if (run.committed === 1) endCommitted(tx, run)
  else applyOutcome(tx, run, outcome)
  return 'settled'
}

function applyOutcome(tx: Tx, run: RunRow, outcome: Outcome): void {
  const goesOn = outcome.kind === 'retry' || outcome.kind === 'released'
  if (outcome.kind === 'failed') run.failures += 1
  if (!goesOn) endRun(tx, run, outcome.kind, endingOf(outcome))
  else if (run.cancel_requested === 1) endRun(tx, run, 'cancelled', endingOf(outcome))
  else if (outcome.kind === 'released') giveBack(tx, run, tx.now)
  else {
    run.failures += 1
    run.error = JSON.stringify(outcome.error)
    giveBack(tx, run, tx.now + outcome.delayMs)
  }
}

function endingOf(outcome: Outcome): Ending {
  if ('error' in outcome && outcome.error !== undefined) return { error: outcome.error }
  return outcome.kind === 'succeeded' ? { result: resultOf(outcome) } : {}
}

function resultOf({ result }: { readonly result?: Json }): string | null {
  return result === undefined ? null : toText(result)
}
