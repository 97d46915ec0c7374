/**
 * How long a store waits for an answer before it takes the connection for dead: a third of the lease, so that an operation
 * whose answer was lost is repeated over another connection while the lease still runs.
 */
import { DEFAULTS } from './defaults.js'

/** Of stores that have not been told of a lease: locks and single calls of a process that does not take part. */
export const USUAL_LEASE_MS = DEFAULTS.instance.leaseMs

/** However short the lease is: a loaded server takes this long now and then. */
const LEAST_MS = 1_000
const MOST_MS = 30_000

export function replyLimitMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 3, LEAST_MS), MOST_MS)
}

/** The shortest lease that a store was told of. Each `join` and `beat` carries one. */
export class KnownLease {
  #leaseMs: number | undefined

  heard(leaseMs: number): void {
    this.#leaseMs = Math.min(this.#leaseMs ?? leaseMs, leaseMs)
  }

  get limitMs(): number {
    return replyLimitMs(this.#leaseMs ?? USUAL_LEASE_MS)
  }
}
