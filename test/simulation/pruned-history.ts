/** Keeps the runs and skips that the store prunes, so that the invariants can still be checked. */

import type { Run } from '../../src/core/runs/run.js'
import type { SkipRange } from '../../src/core/schedules/plan.js'
import type { Schedule } from '../../src/core/schedules/schedule.js'
import type { Store } from '../../src/core/store.js'
import type { Chronicle } from './chronicle.js'

export const ALL = 1_000_000

export interface History {
  readonly schedules: ReadonlyMap<string, Schedule>
  readonly runs: ReadonlyMap<string, Run>
  readonly skips: ReadonlyMap<string, readonly SkipRange[]>
}

/** All schedules, runs and skips that the store has at this moment. */
export async function historyOf(store: Store, chronicle: Chronicle): Promise<History> {
  const known = [...chronicle.schedules]
  const schedules = store.schedules.list({ limit: ALL })
  const runs = store.runs.list({ limit: ALL })
  const skips = known.map((id) => store.schedules.skips(id, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, ALL))
  const ranges = await Promise.all(skips)
  return {
    schedules: new Map((await schedules).items.map((schedule) => [schedule.id, schedule])),
    runs: new Map((await runs).items.map((run) => [run.id, run])),
    skips: new Map(known.map((id, at) => [id, ranges[at] ?? []])),
  }
}

export async function keepPruned(store: Store, chronicle: Chronicle, prune: () => Promise<number>): Promise<number> {
  if (!chronicle.prunes) return prune()
  const position = chronicle.nextPosition()
  const earlier = historyOf(store, chronicle)
  const pruned = prune()
  const later = historyOf(store, chronicle)
  const [before, after] = await Promise.all([earlier, later])
  for (const [id, run] of before.runs) if (!after.runs.has(id)) chronicle.prunedRuns.push(run)
  for (const [id, ranges] of before.skips) {
    const left = new Set((after.skips.get(id) ?? []).map(({ from }) => from))
    for (const range of ranges) if (!left.has(range.from)) chronicle.prunedSkips.push({ schedule: id, range })
  }
  for (const [id, { cursor }] of before.schedules) {
    if (!after.schedules.has(id)) chronicle.write({ kind: 'pruned', schedule: id, cursor }, position)
  }
  return pruned
}
