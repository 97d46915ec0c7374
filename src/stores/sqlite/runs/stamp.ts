import { isFinished } from '../../../core/runs/run.js'
import type { Stamp } from '../../../core/store.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { findRun, stampRun } from './transitions.js'

export function* stampRuns(tx: Tx, stamps: readonly Stamp[]): Steps<void> {
  yield* stepwise(stamps, ({ run: id, key }) => {
    const run = findRun(tx, id)
    if (run?.unstamped === 1 && !isFinished(run)) stampRun(tx, run, key)
  })
}
