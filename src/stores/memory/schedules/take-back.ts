import type { TakeBack, UnclaimedTick } from '../../../core/schedules/declare.js'
import type { RunRecord } from '../runs/run-codec.js'
import { skipRun, unrecordRun } from '../runs/transitions.js'
import type { Lane, MemoryState } from '../schema/state.js'
import { addSkip } from './skips.js'

/** The schedule's ticks that were recorded and never claimed. */
export function unclaimedTicks(lane: Lane | undefined): UnclaimedTick[] {
  return unclaimedRuns(lane).map(({ id, tick }) => ({ run: id, tick: tick ?? 0 }))
}

export function unclaimedRuns(lane: Lane | undefined): RunRecord[] {
  return [...(lane?.engaged ?? [])].filter((run) => run.origin === 'tick' && run.attempt === 0)
}

/** Deletes future ticks, skips due ones, and records due ticks that were not recorded yet as skipped. */
export function takeBackTicks(state: MemoryState, lane: Lane, { remove, skip, reason, unrecorded }: TakeBack): void {
  for (const range of unrecorded) addSkip(state, lane, range)
  for (const id of remove) {
    const run = state.runs.get(id)
    if (run !== undefined) unrecordRun(state, run)
  }
  for (const id of skip) {
    const run = state.runs.get(id)
    if (run !== undefined) skipRun(state, run, reason)
  }
}
