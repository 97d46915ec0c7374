import { isFinished } from '../../../core/runs/run.js'
import type { Stamp } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { stampRun } from './transitions.js'

export function stampRuns(state: MemoryState, stamps: readonly Stamp[]): void {
  for (const { run: id, key } of stamps) {
    const run = state.runs.get(id)
    if (run?.unstamped && !isFinished(run)) stampRun(state, run, key)
  }
}
