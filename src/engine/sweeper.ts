/**
 * The sweeper puts right what crashes left behind: it takes over the runs of dead instances, stamps keys onto runs that
 * were made without the job's code, forgets old history, and lets the newest release's schedules rule. Every instance
 * sweeps, at its own irregular pace; each step is a bounded transaction that finds nothing if another was first.
 */
import type { Logger } from '../core/logger.js'
import { desynchronise } from '../core/retry.js'
import type { PruneRequest, Store } from '../core/store.js'
import type { Events } from './events.js'

export interface SweeperOptions {
  readonly store: Store
  readonly log: Logger
  readonly events: Events
  readonly leaseMs: number
  readonly batch: number
  readonly history: Pick<PruneRequest, 'maxAgeMs' | 'maxRuns'>
  /** Computes keys that only this instance's code can compute. */
  readonly stampKeys: () => Promise<void>
  readonly syncReleases: () => Promise<void>
  /** Told when runs became ready. */
  readonly onRescued: () => void
  readonly instance: () => string
}

const LEASE_AGE_MS = 24 * 3_600_000
/** Pruning and releases are looked at every so many sweeps. */
const HOUSEKEEPING_EVERY = 8
/** How often to look for the dead where the store knows at once of them. */
const PROVEN_EVERY_MS = 500

export function sweeper(options: SweeperOptions): () => Promise<number> {
  const { store, log, events, leaseMs, batch, onRescued, instance } = options
  const sweepMs = store.onLost === undefined ? leaseMs / 4 : Math.min(leaseMs / 4, PROVEN_EVERY_MS)
  /** All but taking over has time. */
  const restEvery = Math.max(Math.round(leaseMs / 4 / sweepMs), 1)
  let round = 0
  return async function sweep() {
    const { rescued, lost } = await store.runs.rescue(batch)
    if (rescued > 0) onRescued()
    if (rescued > 0 || lost > 0) {
      events.emit('runs:taken-over', { rescued, lost })
      log.info({ rescued, lost }, 'took over runs of instances that are gone')
    }
    if (rescued + lost >= batch) return 0
    if (round % restEvery === 0) await options.stampKeys()
    if (round % (restEvery * HOUSEKEEPING_EVERY) === 0) {
      await options.syncReleases()
      await prune(options)
    }
    round += 1
    return desynchronise(sweepMs, instance(), round)
  }
}

async function prune({ store, batch, history }: SweeperOptions): Promise<void> {
  // Bounded, so that a store with a long neglected history is not held up: the rest goes with the next rounds.
  for (let step = 0; step < 10; step += 1) {
    const pruned = await store.runs.prune({ ...history, leaseAgeMs: LEASE_AGE_MS, limit: batch })
    if (pruned < batch) return
  }
}
