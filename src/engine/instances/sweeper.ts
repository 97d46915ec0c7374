/**
 * The sweeper takes over the runs of dead instances, stamps keys onto runs that were enqueued without the job's code,
 * and puts the schedules of the newest release. Every instance sweeps, at irregular intervals. Each step is a bounded
 * transaction that changes nothing if another instance was first.
 */
import type { Logger } from '../../core/logger.js'
import { desynchronise } from '../../core/runs/retry-policy.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'

export interface SweeperOptions {
  readonly store: Store
  readonly log: Logger
  readonly events: Events
  readonly leaseMs: number
  readonly batch: number
  /** Stamps keys that only this instance's code can compute. */
  readonly stampKeys: () => Promise<void>
  readonly syncReleases: () => Promise<void>
  /** Called when runs became ready. */
  readonly onRescued: () => void
  readonly instance: () => string
  /** Whether this instance may itself count as dead, because it was blocked and has not sent a beat since. */
  readonly isInDoubt: () => boolean
}

/** Releases are synced once in this many sweeps. */
const RELEASES_EVERY = 8
/** The sweep interval on stores that detect dead instances at once. */
const PROVEN_EVERY_MS = 500
/** A sweeper in doubt about its own instance looks again after this long. */
const DOUBT_MS = 100

export function sweeper(options: SweeperOptions): () => Promise<number> {
  const { store, log, events, leaseMs, batch, onRescued, instance } = options
  const sweepMs = store.onLost === undefined ? leaseMs / 4 : Math.min(leaseMs / 4, PROVEN_EVERY_MS)
  // Only takeovers need the short interval. Keys and releases keep the usual one.
  const restEvery = Math.max(Math.round(leaseMs / 4 / sweepMs), 1)
  let round = 0
  return async function sweep() {
    if (options.isInDoubt()) return DOUBT_MS
    const { rescued, lost } = await store.runs.rescue(batch)
    if (rescued > 0) onRescued()
    if (rescued > 0 || lost > 0) {
      events.emit('runs:taken-over', { rescued, lost })
      log.info({ rescued, lost }, 'took over runs of instances that are gone')
      if (lost > 0) {
        log.error({ lost }, `${lost} runs have failed for good as LOST: too many instances died while they ran them`)
      }
    }
    if (rescued + lost >= batch) return 0
    if (round % restEvery === 0) await options.stampKeys()
    if (round % (restEvery * RELEASES_EVERY) === 0) await options.syncReleases()
    round += 1
    return desynchronise(sweepMs, instance(), round)
  }
}
