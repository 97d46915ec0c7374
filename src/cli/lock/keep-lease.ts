/** Renews a lease every quarter of its ttl until it is lost or released. */
import type { BelfryClient, LeaseResource } from '../../client/index.js'
import { machineMs } from '../supervisor/supervisor-messages.js'

export interface LeaseEvents {
  /** The lease lasts at least its ttl, counted from `sentAt`. */
  readonly renewed: (sentAt: number) => void
  readonly lost: () => void
}

/** The returned function stops renewing, and waits for a renewal in flight. */
export function keepLease(
  client: BelfryClient,
  lease: LeaseResource,
  ttlMs: number,
  { renewed, lost }: LeaseEvents,
): () => Promise<void> {
  let isOver = false
  let wake = () => {}
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const work = async () => {
    for (let delayMs = ttlMs / 4; ; ) {
      await pause(delayMs)
      if (isOver) return
      const sentAt = machineMs()
      try {
        const timeout = AbortSignal.timeout(ttlMs / 4)
        if ((await client.locks.renew(lease.name, lease, ttlMs, timeout)) === undefined) return lost()
        renewed(sentAt)
        delayMs = ttlMs / 4
      } catch {
        // The service is unreachable: retry soon. The supervisor ends the program before the lease expires.
        delayMs = ttlMs / 20
      }
    }
  }
  const working = work()
  return async () => {
    isOver = true
    wake()
    // A renewal that arrived after the release would acquire the lease again, so wait for the one in flight, within limits.
    await Promise.race([working, pause(ttlMs / 2)])
    wake()
  }
}
