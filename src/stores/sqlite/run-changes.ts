/**
 * How a run moves between waiting and ready. `run-endings.ts` has the rest of its life. Operations are made of these
 * steps; each writes the row at once, notes what it has freed as touched, and `handOn` hands that on before the
 * operation ends.
 */
import { failure } from '../../core/errors.js'
import type { RunState, WaitsFor } from '../../core/run.js'
import { mayBecome } from '../../core/transitions.js'
import type { RunRecord } from './run-row.js'
import { saveRun } from './run-write.js'
import type { Tx } from './tx.js'

/** Puts a run where claims look for it, now or when its time has come. One without its key waits for that first. */
export function makeReady(tx: Tx, run: RunRecord): void {
  if (run.unstamped) makeWait(tx, run, 'stamp')
  else {
    become(run, 'ready')
    run.waitsFor = undefined
    if (run.attempt > 0) run.engaged = true
    saveRun(tx, run)
    tx.readied += 1
    tx.wakes.add('runs')
  }
}

export function makeWait(tx: Tx, run: RunRecord, waitsFor: WaitsFor): void {
  become(run, 'waiting')
  run.waitsFor = waitsFor
  run.engaged = true
  saveRun(tx, run)
}

/** The one way to another state: by the transitions that are allowed. */
export function become(run: RunRecord, to: RunState): void {
  // A waiting run may come to wait for something else.
  if (run.state !== to && !mayBecome(run.state, to)) {
    throw failure('TRANSITION_REFUSED', `run ${run.id} is ${run.state} and cannot become ${to}`)
  }
  run.state = to
}
