import type { Outcome } from '../../core/run.js'
import type { Settlement, SettleResult } from '../../core/store.js'
import { toText } from '../../core/stored-text.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { anyoneWaitsForALane, handOn } from './names.js'
import { type Ending, endCommitted, endRun, giveBack } from './run-endings.js'
import type { RunRecord } from './run-row.js'
import { loadRun, runNumber } from './run-write.js'
import type { Tx } from './tx.js'

export async function settleInSteps(file: SqliteFile, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const results: SettleResult[] = []
  while (results.length < settlements.length) {
    const step = settlements.slice(results.length, results.length + file.share)
    results.push(...(await file.write((tx) => settleRuns(tx, step))))
  }
  return results
}

/** What succeeded is settled all at once as far as possible, and the rest one by one. */
function settleRuns(tx: Tx, settlements: readonly Settlement[]): SettleResult[] {
  const settled = anyoneWaitsForALane(tx) ? 'none' : succeed(tx, settlements.filter(isSuccess))
  const results = settlements.map((settlement): SettleResult => {
    const atOnce = settled === 'all' ? isSuccess(settlement) : settled !== 'none' && settled.has(settlement.run)
    return atOnce ? 'settled' : settleRun(tx, settlement)
  })
  handOn(tx)
  return results
}

function settleRun(tx: Tx, { run: id, token, outcome }: Settlement): SettleResult {
  const number = runNumber(id)
  const run = number === undefined ? undefined : loadRun(tx, number)
  if (run === undefined) return 'stale'
  if (run.settledToken === token) return 'settled'
  if (!isCurrent(tx.db, run, token)) return 'stale'
  run.settledToken = token
  if (run.committed) endCommitted(tx, run)
  else applyOutcome(tx, run, outcome)
  return 'settled'
}

type Success = Settlement & { readonly outcome: { readonly kind: 'succeeded' } }

function isSuccess(settlement: Settlement): settlement is Success {
  return settlement.outcome.kind === 'succeeded'
}

// Runs that nothing waits for: no key, nothing to dedupe, nothing committed before.
const PLAIN = 'state = 2 and key is null and dedupe is null and committed = 0'

const KEEP = `update belfry_runs set state = 3, finished_at = ?2, ended = v.ended, result = v.result, error = null,
    settled_token = token
  from (select value ->> 0 as run, value ->> 1 as attempt, value ->> 2 as result, ?3 + key as ended
    from json_each(?1)) v
  where id = v.run and token = v.attempt and keep = 0 and ${PLAIN}`

const FORGET = `delete from belfry_runs
  where (id, token) in (select value ->> 0, value ->> 1 from json_each(?)) and keep > 0 and ${PLAIN} returning id`

/** What most runs come to. Answers which of them it was: all, or those that are gone; what it kept knows its token. */
function succeed({ db, now, counters, wakes }: Tx, successes: readonly Success[]): 'all' | ReadonlySet<string> {
  if (successes.length === 0) return 'all'
  const rows = successes.map(({ run, token, outcome: { result } }) => [
    runNumber(run) ?? 0,
    token,
    result === undefined ? null : toText(result),
  ])
  const values = JSON.stringify(rows)
  wakes.add('settled')
  const kept = db.run(KEEP, values, now, counters.reserveEnded(successes.length))
  counters.forgetEnded(successes.length - kept)
  if (kept === successes.length) return 'all'
  return new Set(db.all<[number]>(FORGET, values).map(([id]) => String(id)))
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
