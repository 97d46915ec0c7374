/**
 * How long a store waits for an answer before it treats the connection as dead: a third of the lease. So an operation whose
 * answer was lost is repeated over another connection before the lease expires.
 */
import { DEFAULTS } from '../defaults.js'

/** The assumed lease of a store whose process has not started an instance. */
export const USUAL_LEASE_MS = DEFAULTS.instance.leaseMs

/** A loaded server sometimes takes this long, however short the lease is. */
const LEAST_MS = 1_000
const MOST_MS = 30_000

export function replyLimitMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 3, LEAST_MS), MOST_MS)
}

/** The shortest lease among the `join` and `beat` requests that a store has seen. */
export class KnownLease {
  #leaseMs: number | undefined

  heard(leaseMs: number): void {
    this.#leaseMs = Math.min(this.#leaseMs ?? leaseMs, leaseMs)
  }

  get limitMs(): number {
    return replyLimitMs(this.#leaseMs ?? USUAL_LEASE_MS)
  }
}
