import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { takeOver } from '../runs/transitions.js'
import { runningRuns } from './beat.js'
import source from './leave.sql'

/** What the instance still runs is taken over at once. */
export function* leaveInstance(tx: Tx, instance: string, died = false): Steps<void> {
  yield* stepwise(runningRuns(tx, instance), (run) => takeOver(tx, run, died))
  forgetInstance(tx, { instance })
}

export const forgetInstance = change<{ instance: string }>(source, 'forgetInstance')
