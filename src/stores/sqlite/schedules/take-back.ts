import type { TakeBack, UnclaimedTick } from '../../../core/schedules/declare.js'
import type { Tx } from '../connection/tx.js'
import { unfinishedRuns } from '../runs/enqueue.js'
import { idOf, type RunRow } from '../runs/run-codec.js'
import { findRun, skipRun, unrecordRun } from '../runs/transitions.js'
import { addSkip } from './skips.js'

/** The schedule's ticks that were recorded and never claimed. */
export function unclaimedTicks(tx: Tx, schedule: string): UnclaimedTick[] {
  return unclaimedRuns(tx, schedule).map((run) => ({ run: idOf(run), tick: run.tick ?? 0 }))
}

export function unclaimedRuns(tx: Tx, schedule: string): RunRow[] {
  return unfinishedRuns(tx, schedule).filter(({ origin, attempt }) => origin === 'tick' && attempt === 0)
}

/** Deletes future ticks, skips due ones, and records due ticks that were not recorded yet as skipped. */
export function takeBackTicks(tx: Tx, schedule: string, { remove, skip, reason, unrecorded }: TakeBack): void {
  for (const range of unrecorded) addSkip(tx, schedule, range)
  for (const id of remove) {
    const run = findRun(tx, id)
    if (run !== undefined) unrecordRun(tx, run)
  }
  for (const id of skip) {
    const run = findRun(tx, id)
    if (run !== undefined) skipRun(tx, run, reason)
  }
}
