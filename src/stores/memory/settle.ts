import type { Outcome } from '../../core/run.js'
import type { Settlement, SettleResult } from '../../core/store.js'
import { handOn } from './names.js'
import { type Ending, endRun, giveBack } from './run-endings.js'
import { frozenCopy, type RunRecord } from './run-record.js'
import type { MemoryState } from './state.js'

export function settleRuns(state: MemoryState, settlements: readonly Settlement[]): SettleResult[] {
  const now = state.clock.now()
  const results = settlements.map((settlement) => settleRun(state, settlement, now))
  handOn(state, now)
  return results
}

function settleRun(state: MemoryState, { run: id, token, outcome }: Settlement, now: number): SettleResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'stale'
  if (run.settledToken === token) return 'settled'
  if (!isCurrent(run, token)) return 'stale'
  run.settledToken = token
  applyOutcome(state, run, outcome, now)
  return 'settled'
}

/** An expired lease counts as held until another holder has taken it. */
function isCurrent(run: RunRecord, token: number): boolean {
  return run.state === 'running' && run.token === token && (run.key === undefined || run.lease !== undefined)
}

function applyOutcome(state: MemoryState, run: RunRecord, outcome: Outcome, now: number): void {
  const goesOn = outcome.kind === 'retry' || outcome.kind === 'released'
  if (outcome.kind === 'failed') run.failures += 1
  if (!goesOn) endRun(state, run, outcome.kind, now, endingOf(outcome))
  else if (run.cancelRequested) endRun(state, run, 'cancelled', now, endingOf(outcome))
  else if (outcome.kind === 'released') giveBack(state, run, now, now)
  else {
    run.failures += 1
    run.error = frozenCopy(outcome.error)
    giveBack(state, run, now + outcome.delayMs, now)
  }
}

function endingOf(outcome: Outcome): Ending {
  if ('error' in outcome && outcome.error !== undefined) return { error: frozenCopy(outcome.error) }
  return outcome.kind === 'succeeded' && outcome.result !== undefined ? { result: outcome.result } : {}
}
