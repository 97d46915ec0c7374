/** One holder of a lease name. A lock has one at a time, a semaphore up to its permits. */
export interface Lease {
  readonly name: string
  /** The acquisition, not the instance: two acquisitions of one process are rivals. */
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  /** Who holds it, for people who look: the instance, and the run when a run's key is meant. */
  readonly instance?: string
  readonly run?: string
  /** Given back before its minimum hold was over: nobody can renew it, and nobody has it until it expires. */
  readonly released?: true
}

export interface AcquireRequest {
  readonly name: string
  readonly holder: string
  readonly ttlMs: number
  /** How many holders there may be, this one included. */
  readonly permits: number
  readonly instance?: string
  /** The client's token floor. */
  readonly floor: number
  /**
   * Keep a place in the queue for this long when it is busy: by asking again in time the waiter proves that it lives. A
   * lease that is handed to it lasts no longer than its place until it asks again.
   */
  readonly waitMs?: number
  /** The holder is no part of this process: where life is proven by more than the lease, its lease counts alone. */
  readonly remote?: boolean
}

/**
 * The part of its time that a place must have left to be left alone when its waiter asks again: waiters ask often, and most
 * of them should not write.
 */
export const FRESH_PLACE = 2 / 3

/** Whether a place that lasts until then need not be prolonged. */
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
