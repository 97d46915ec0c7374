import type { Wake, WakeListener } from './store.js'

/** A hint as a store keeps it until it is told: what to look at, or to whom a lock was handed. */
export type Hint = Wake | { readonly handedTo: string }

/** How far ahead schedules are hinted at. Those due later are no news: whoever records ticks looks twice as often as this. */
export const SOON_MS = 60_000

/** Whether a schedule is worth a hint: most are put long before they are due, and nobody should be woken for each of them. */
export function isSoon(dueAt: number | undefined, now: number): boolean {
  return dueAt !== undefined && dueAt <= now + SOON_MS
}

export function tell(listener: WakeListener, hint: Hint): void {
  if (typeof hint === 'string') listener(hint)
  else listener('leases', hint.handedTo)
}
