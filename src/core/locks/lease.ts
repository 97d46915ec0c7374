/** One holder of a lease name. A lock has one at a time, a semaphore up to its permits. */
export interface Lease {
  readonly name: string
  /** Identifies the acquisition, not the instance: two acquisitions of one process exclude each other. */
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  /** For display: the instance that holds it, and the run if the lease is the key of a run. */
  readonly instance?: string
  readonly run?: string
  /** Released before its minimum hold was over: until the lease expires it can be neither renewed nor acquired. */
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
   * When the lease is busy, the waiter keeps a place in the queue for this long, and prolongs it by asking again. A
   * lease that is handed to the waiter lasts only as long as the place did, until the waiter asks again.
   */
  readonly waitMs?: number
  /** The holder is outside of this process. So only its lease, and not the process's proof of life, shows that it lives. */
  readonly remote?: boolean
}

/**
 * A waiter that asks again prolongs its place only when less than this share of the place's time is left. Waiters ask
 * often, so most requests need no write.
 */
export const FRESH_PLACE = 2 / 3

/** Whether a place that lasts until `until` need not be prolonged. */
export function isFreshPlace(until: number, now: number, waitMs: number): boolean {
  return until - now >= waitMs * FRESH_PLACE
}

export type AcquireResult =
  | { readonly acquired: true; readonly lease: Lease; readonly now: number }
  /** The lease is busy until `until` at least: the earliest expiry among its holders. */
  | { readonly acquired: false; readonly until: number; readonly now: number }

export interface RenewRequest {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly ttlMs: number
  readonly remote?: boolean
}

export interface ReleaseRequest {
  readonly name: string
  readonly holder: string
  /** The lease stays held until this long after its acquisition. */
  readonly minHoldMs?: number
}
