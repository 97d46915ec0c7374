import { decideRemove } from '../../../core/schedules/declare.js'
import type { RemoveResult } from '../../../core/store.js'
import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { unfinishedRuns } from '../runs/enqueue.js'
import { endRun } from '../runs/transitions.js'
import { getSchedule } from './list.js'
import source from './remove.sql'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

export function removeSchedules(tx: Tx, ids: readonly string[], ifVersion?: number): Steps<RemoveResult[]> {
  return stepwise(ids, (id): RemoveResult => {
    const schedule = getSchedule(tx, id)
    if (schedule === undefined) return 'missing'
    if (ifVersion !== undefined && ifVersion !== schedule.version) return 'conflict'
    takeBackTicks(tx, id, decideRemove(schedule, unclaimedTicks(tx, id), tx.now))
    // Ticks between attempts are cancelled. Running runs, and runs that were started by hand, go on.
    for (const run of unfinishedRuns(tx, id)) {
      if (run.origin === 'tick' && run.attempt > 0 && run.state !== 'running') endRun(tx, run, 'cancelled')
    }
    forgetSchedule(tx, { id })
    return 'removed'
  })
}

export const forgetSchedule = change<{ id: string }>(source, 'forgetSchedule')
