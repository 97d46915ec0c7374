/**
 * The pruner removes old history in bounded transactions. A full step means that more is left, so the next one follows after
 * a short rest. The rest is several times as long as the step took, so that a long history is pruned without slowing runs.
 */
import type { Clock } from '../../core/clock.js'
import { desynchronise } from '../../core/runs/retry-policy.js'
import type { PruneRequest, Store } from '../../core/store.js'

export interface PrunerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly leaseMs: number
  readonly batch: number
  readonly history: Pick<PruneRequest, 'maxAgeMs' | 'maxRuns'>
  readonly instance: () => string
}

/** Expired leases are kept this long: the next token of their name grows from the last one. */
const LEASE_AGE_MS = 24 * 3_600_000
const INTERVAL_LEASES = 2
/** The rest after a full step, as a multiple of the step's duration. */
const REST = 4
const MIN_REST_MS = 50

export function pruner({ store, clock, leaseMs, batch, history, instance }: PrunerOptions): () => Promise<number> {
  let round = 0
  return async function prune() {
    const startedAt = clock.monotonic()
    const pruned = await store.runs.prune({ ...history, leaseAgeMs: LEASE_AGE_MS, limit: batch })
    if (pruned >= batch) return Math.max((clock.monotonic() - startedAt) * REST, MIN_REST_MS)
    round += 1
    return desynchronise(leaseMs * INTERVAL_LEASES, instance(), round)
  }
}
