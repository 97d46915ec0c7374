import type { Wake, WakeListener } from './store.js'

/** A hint as a store keeps it until it is told: what to look at, or to whom a lock was handed. */
export type Hint = Wake | { readonly handedTo: string }

export function tell(listener: WakeListener, hint: Hint): void {
  if (typeof hint === 'string') listener(hint)
  else listener('leases', hint.handedTo)
}
