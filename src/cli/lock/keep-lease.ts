/** Renews a lease every quarter of its time, until it is lost or nobody needs it any more. */
import type { BelfryClient, LeaseResource } from '../../client/index.js'
import { machineMs } from '../guard/guard-messages.js'

export interface LeaseEvents {
  /** It lasts its time from then on. */
  readonly renewed: (sentAt: number) => void
  readonly lost: () => void
}

/** The returned function ends it, once what is under way is over. */
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
        const timely = AbortSignal.timeout(ttlMs / 4)
        if ((await client.locks.renew(lease.name, lease, ttlMs, timely)) === undefined) return lost()
        renewed(sentAt)
        delayMs = ttlMs / 4
      } catch {
        // Nobody answers: asked again soon, for as long as the lease is to be trusted. The guard knows how long that is.
        delayMs = ttlMs / 20
      }
    }
  }
  const working = work()
  return async () => {
    isOver = true
    wake()
    // A renewal that overtook the release would bring the lease back, so it is waited for; but not for ever.
    await Promise.race([working, pause(ttlMs / 2)])
    wake()
  }
}
