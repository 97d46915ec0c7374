/** Counts of instances and runs. Each count stops at a bound, so the cost does not grow with the store. */

import type { RunState } from '../../core/runs/run.js'
import type { Frozen, Store } from '../../core/store.js'

export interface Stats {
  readonly now: Date
  readonly instances: { readonly live: number; readonly gone: number }
  readonly frozen?: Frozen
  /** Runs that are due and have not started. */
  readonly due: BoundedCount
  /** Ready runs, including delayed ones. */
  readonly ready: BoundedCount
  readonly waiting: BoundedCount
  readonly running: BoundedCount
}

/** A count up to a bound: `more` means that there are at least this many. */
export interface BoundedCount {
  readonly count: number
  readonly more: boolean
}

const MOST = 1_000
/** How many runs a store without an index of states looks through for one count. */
export const MAX_LOOKED = 100_000
/** The bound of due runs for each job and sink. Alerts compare the sum with numbers below this. */
export const MOST_DUE = 2_000

export async function stats(store: Store): Promise<Stats> {
  const now = await store.now()
  const [instances, { targets }, frozen, ready, waiting, running] = await Promise.all([
    store.instances.list(),
    store.runs.backlog(MOST_DUE),
    store.frozen(),
    probe(store, 'ready'),
    probe(store, 'waiting'),
    probe(store, 'running'),
  ])
  const live = instances.filter(({ expiresAt }) => expiresAt >= now).length
  return {
    now: new Date(now),
    instances: { live, gone: instances.length - live },
    ...(frozen === undefined ? {} : { frozen }),
    due: { count: targets.reduce((sum, { due }) => sum + due, 0), more: targets.some(({ more }) => more) },
    ready,
    waiting,
    running,
  }
}

async function probe(store: Store, state: RunState): Promise<BoundedCount> {
  const { items, next } = await store.runs.list({ states: [state], limit: MOST, look: MAX_LOOKED })
  return { count: items.length, more: next !== undefined }
}
