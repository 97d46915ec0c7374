import type { Outcome } from '../../../core/runs/run.js'
import type { Settlement, SettleResult } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { frozenCopy, type RunRecord } from './run-codec.js'
import { type Ending, endRun, giveBack } from './transitions.js'

export function settleRuns(state: MemoryState, settlements: readonly Settlement[]): SettleResult[] {
  return settlements.map((settlement) => settleRun(state, settlement))
}

function settleRun(state: MemoryState, { run: id, token, outcome }: Settlement): SettleResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'stale'
  if (run.settledToken === token) return 'settled'
  if (!isCurrent(run, token)) return 'stale'
  run.settledToken = token
  applyOutcome(state, run, outcome)
  return 'settled'
}

/** Whether the attempt still has the run. An expired key counts as held until another holder took it. */
function isCurrent(run: RunRecord, token: number): boolean {
  return run.state === 'running' && run.token === token && (run.key === undefined || run.lease !== undefined)
}

function applyOutcome(state: MemoryState, run: RunRecord, outcome: Outcome): void {
  const goesOn = outcome.kind === 'retry' || outcome.kind === 'released'
  const ending: Ending = 'error' in outcome || 'result' in outcome ? outcome : {}
  if (outcome.kind === 'failed') run.failures += 1
  if (!goesOn) endRun(state, run, outcome.kind, ending)
  else if (run.cancelRequested) endRun(state, run, 'cancelled', ending)
  else if (outcome.kind === 'released') giveBack(state, run, state.now)
  else {
    run.failures += 1
    run.error = frozenCopy(outcome.error)
    giveBack(state, run, state.now + outcome.delayMs)
  }
}
