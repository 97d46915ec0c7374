import type { Lease } from '../../src/core/locks/lease.js'
import type { Run } from '../../src/core/runs/run.js'
import type { SkipRange } from '../../src/core/schedules/plan.js'
import type { Schedule } from '../../src/core/schedules/schedule.js'
import type { SimulatedCluster } from './cluster.js'
import { ALL, historyOf } from './pruned-history.js'

/** The contents of the store after the drain. */
export interface FinalState {
  readonly now: number
  /** Runs that were unfinished before the schedules resumed. */
  readonly unfinished: readonly Run[]
  readonly leases: readonly Lease[]
  /** Every run in the history, pruned ones included. */
  readonly runs: readonly Run[]
  readonly skips: ReadonlyMap<string, readonly SkipRange[]>
  readonly schedules: ReadonlyMap<string, Schedule>
}

/** Reads the store after resuming all schedules, so that every tick up to now is accounted for. */
export async function readFinalState({ clock, store, chronicle }: SimulatedCluster): Promise<FinalState> {
  const now = clock.now()
  const unfinished = await store.runs.list({ states: ['waiting', 'ready', 'running'], limit: ALL })
  const leases = await store.leases.list({ limit: ALL })
  for (const id of chronicle.schedules) await store.schedules.resume(id)
  const { runs, skips, schedules } = await historyOf(store, chronicle)
  const pruned = (id: string) =>
    chronicle.prunedSkips.filter(({ schedule }) => schedule === id).map(({ range }) => range)
  return {
    now,
    unfinished: unfinished.items,
    leases: leases.items,
    runs: [...chronicle.prunedRuns, ...runs.values()],
    skips: new Map(Array.from(skips, ([id, ranges]) => [id, [...pruned(id), ...ranges]])),
    schedules,
  }
}
