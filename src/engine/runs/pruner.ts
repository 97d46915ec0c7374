/**
 * The pruner forgets old history, in steps that are bounded transactions. Most of the time there is little to forget, and
 * it looks now and then; while there is more than a step, it comes back soon, and rests in between for several times as
 * long as the step took: a history that was neglected goes away, and real work does not feel it.
 */
import type { Clock } from '../../core/clock.js'
import { desynchronise } from '../../core/retry.js'
import type { PruneRequest, Store } from '../../core/store.js'

export interface PrunerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly leaseMs: number
  readonly batch: number
  readonly history: Pick<PruneRequest, 'maxAgeMs' | 'maxRuns'>
  readonly instance: () => string
}

/** Locks whose holders went away without a word. */
const LEASE_AGE_MS = 24 * 3_600_000
/** How often to look, in leases. */
const EVERY_LEASES = 2
/** How many times as long as a step took there is none. */
const REST = 4
const MIN_REST_MS = 50

export function pruner({ store, clock, leaseMs, batch, history, instance }: PrunerOptions): () => Promise<number> {
  let round = 0
  return async function prune() {
    const before = clock.monotonic()
    const pruned = await store.runs.prune({ ...history, leaseAgeMs: LEASE_AGE_MS, limit: batch })
    if (pruned >= batch) return Math.max((clock.monotonic() - before) * REST, MIN_REST_MS)
    round += 1
    return desynchronise(leaseMs * EVERY_LEASES, instance(), round)
  }
}
