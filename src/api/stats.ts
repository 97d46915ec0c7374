/** How things stand, by looks whose cost does not grow with what is stored. */

import type { RunState } from '../core/run.js'
import type { Frozen, Store } from '../core/store.js'

export interface Stats {
  readonly now: Date
  readonly instances: { readonly live: number; readonly gone: number }
  readonly frozen?: Frozen
  /** Runs that could start now, were there somebody to start them. */
  readonly due: AtLeast
  /** Ready, delayed ones included. */
  readonly ready: AtLeast
  readonly waiting: AtLeast
  readonly running: AtLeast
}

/** A number that was counted up to a bound: more means that there are at least so many. */
export interface AtLeast {
  readonly count: number
  readonly more: boolean
}

const MOST = 1_000

export async function stats(store: Store): Promise<Stats> {
  const now = await store.now()
  const [instances, frozen, ready, waiting, running] = await Promise.all([
    store.instances.list(),
    store.frozen(),
    probe(store, 'ready'),
    probe(store, 'waiting'),
    probe(store, 'running'),
  ])
  const live = instances.filter(({ expiresAt }) => expiresAt >= now).length
  const due = ready.readyAts.filter((at) => at <= now).length
  return {
    now: new Date(now),
    instances: { live, gone: instances.length - live },
    ...(frozen === undefined ? {} : { frozen }),
    due: { count: due, more: ready.more },
    ready: { count: ready.readyAts.length, more: ready.more },
    waiting: { count: waiting.readyAts.length, more: waiting.more },
    running: { count: running.readyAts.length, more: running.more },
  }
}

/** In one page: a store knows by itself how many have not ended, and where to stop looking for them. */
async function probe(store: Store, state: RunState): Promise<{ readonly readyAts: number[]; readonly more: boolean }> {
  const { items, next } = await store.runs.list({ states: [state], limit: MOST })
  return { readyAts: items.map(({ readyAt }) => readyAt), more: next !== undefined }
}
