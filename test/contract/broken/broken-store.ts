/** Memory stores with one deliberate fault each, and the name of a contract test that must catch it. */
import type { Clock } from '../../../src/core/clock.js'
import type { Store } from '../../../src/core/store.js'
import type { RunRecord } from '../../../src/stores/memory/runs/run-codec.js'
import { makeWait } from '../../../src/stores/memory/runs/transitions.js'
import { emptyState, type MemoryState } from '../../../src/stores/memory/schema/state.js'
import { storeOn } from '../../../src/stores/memory/store.js'

interface Overrides {
  readonly schedules?: Partial<Store['schedules']>
  readonly runs?: Partial<Store['runs']>
  readonly leases?: Partial<Store['leases']>
  readonly instances?: Partial<Store['instances']>
}

export interface BrokenStore {
  readonly fault: string
  readonly caughtBy: string
  readonly breaks: (store: Store, state: MemoryState) => Overrides
}

export function openBroken({ breaks }: BrokenStore, clock: Clock): Store {
  const state = emptyState(clock)
  const store = storeOn(state)
  const { schedules = {}, runs = {}, leases = {}, instances = {} } = breaks(store, state)
  return {
    ...store,
    schedules: { ...store.schedules, ...schedules },
    runs: { ...store.runs, ...runs },
    leases: { ...store.leases, ...leases },
    instances: { ...store.instances, ...instances },
  }
}

export function records(state: MemoryState): RunRecord[] {
  return [...state.runs.values()]
}

/** Runs an operation, and then makes the waiting runs that became ready by it wait again. */
export async function withoutHandOff<Result>(
  state: MemoryState,
  waitsFor: 'key' | 'overlap',
  act: () => Promise<Result>,
): Promise<Result> {
  const waited = records(state).filter((run) => run.waitsFor === waitsFor)
  const result = await act()
  for (const run of waited) if (run.state === 'ready') makeWait(state, run, waitsFor)
  return result
}
