import type { Wake, WakeListener } from '../store.js'

/** A hint that a store has still to send: what changed, or which holder a lock was handed to. */
export type Hint = Wake | { readonly handedTo: string }

/** A schedule that is due later than this needs no hint: tickers look at least twice in this time. */
export const SOON_MS = 60_000

/** Whether a put schedule needs a hint. Most are put long before they are due, and a hint for each would wake every ticker. */
export function isSoon(dueAt: number | undefined, now: number): boolean {
  return dueAt !== undefined && dueAt <= now + SOON_MS
}

export function tell(listener: WakeListener, hint: Hint): void {
  if (typeof hint === 'string') listener(hint)
  else listener('leases', hint.handedTo)
}
