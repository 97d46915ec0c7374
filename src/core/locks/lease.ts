/** One holder of a lease name. A lock has one at a time, a semaphore up to its permits. */
export interface Lease {
  readonly name: string
  /** The acquisition, not the instance: two acquisitions of one process are rivals. */
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  /** For display: the instance that holds it, and the run if the lease is the key of a run. */
  readonly instance?: string
  readonly run?: string
  /** Released before its minimum hold was over: it cannot be renewed, and nobody can acquire it until it expires. */
  readonly released?: true
}

export interface AcquireRequest {
  readonly name: string
  readonly holder: string
  readonly ttlMs: number
  /** How many holders there may be, this one included. */
  readonly permits: number
  readonly instance?: string
  /** See `TokenFloor`. */
  readonly floor: number
  /**
   * When the lease is busy, keep a place in the waiter queue for this long. The waiter asks again in time to prove that it
   * lives. A lease that is handed to it lasts only as long as its place until it asks again.
   */
  readonly waitMs?: number
  /** The holder is outside of this process, so the process's proof of life does not count for it. Only its lease does. */
  readonly remote?: boolean
}

/**
 * A place in the waiter queue with at least this part of its time left is not prolonged. Waiters ask often, so most asks
 * need no write.
 */
export const FRESH_PLACE = 2 / 3

/** Whether a place that lasts until `until` need not be prolonged. */
export function isFreshPlace(until: number, now: number, waitMs: number): boolean {
  return until - now >= waitMs * FRESH_PLACE
}

export type AcquireResult =
  | { readonly acquired: true; readonly lease: Lease; readonly now: number }
  /** Busy; the soonest instant at which a holder's lease runs out. */
  | { readonly acquired: false; readonly until: number; readonly now: number }

export interface RenewRequest {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly ttlMs: number
  /** As in `AcquireRequest`. */
  readonly remote?: boolean
}

export interface ReleaseRequest {
  readonly name: string
  readonly holder: string
  /** Hold on to it until this long after it was acquired. */
  readonly minHoldMs?: number
}
