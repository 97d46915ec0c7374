import type { RunState } from '../../core/runs/run.js'
import type { Store } from '../../core/store.js'

/** The newest runs of a schedule that are still in the history. */
export interface RecentRuns {
  readonly last?: { readonly run: string; readonly state: RunState; readonly at: number }
  /** 95th percentile of the durations of the newest attempts that succeeded or failed. */
  readonly p95Ms?: number
}

const NEWEST = 20

export async function recentRuns(store: Store, schedule: string): Promise<RecentRuns> {
  const { items } = await store.runs.list({ schedule, limit: NEWEST })
  const last = items.find(({ finishedAt }) => finishedAt !== undefined)
  const took = items
    .filter(({ state }) => state === 'succeeded' || state === 'failed')
    .flatMap(({ startedAt, finishedAt }) =>
      startedAt === undefined || finishedAt === undefined ? [] : [finishedAt - startedAt],
    )
    .sort((one, other) => one - other)
  const p95Ms = took[Math.ceil(took.length * 0.95) - 1]
  return {
    ...(last?.finishedAt === undefined ? {} : { last: { run: last.id, state: last.state, at: last.finishedAt } }),
    ...(p95Ms === undefined ? {} : { p95Ms }),
  }
}
