import type { TakeBack, UnclaimedTick } from '../../../core/schedules/declare.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { idOf, type RunName } from '../runs/run-codec.js'
import { findRun, skipRun, unrecordRun } from '../runs/transitions.js'
import { addSkip } from './skips.js'
import source from './take-back.sql'

const selectUnclaimed = statement<{ schedule: string }, RunName & { tick: number }>(source, 'unclaimedTicks')

export function unclaimedTicks({ db }: Tx, schedule: string): UnclaimedTick[] {
  return db.all(selectUnclaimed, { schedule }).map((run) => ({ run: idOf(run), tick: run.tick }))
}

/** Deletes future ticks, skips due ones, and records due ticks that were not recorded yet as skipped. */
export function takeBackTicks(tx: Tx, schedule: string, { remove, skip, reason, unrecorded }: TakeBack): void {
  for (const range of unrecorded) addSkip(tx, schedule, range)
  for (const id of remove) {
    const run = findRun(tx.db, id)
    if (run !== undefined) unrecordRun(tx, run)
  }
  for (const id of skip) {
    const run = findRun(tx.db, id)
    if (run !== undefined) skipRun(tx, run, reason)
  }
}
