import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { takeOver } from '../runs/transitions.js'
import { runningRuns } from './beat.js'
import source from './leave.sql'

/** What the instance still runs is taken over at once. */
export function* leaveInstance(tx: Tx, instance: string): Steps<void> {
  yield* forget(tx, instance, false)
}

/** Takes over what an instance runs, and forgets it. */
export function* forget(tx: Tx, instance: string, died: boolean): Steps<void> {
  yield* stepwise(runningRuns(tx, instance), (run) => takeOver(tx, run, died))
  forgetInstance(tx, instance)
}

const forgetStatement = statement<{ instance: string }>(source, 'forgetInstance')

export function forgetInstance({ db }: Tx, instance: string): void {
  db.run(forgetStatement, { instance })
}
