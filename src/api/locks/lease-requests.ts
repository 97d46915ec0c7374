/**
 * Acquires leases from the store. A caller with time to wait gets a place in the lock's waiter queue, and keeps it by
 * asking again. Most of these requests only read, because the operation that frees the lock hands it to the first
 * waiter.
 *
 * - A waiter's process dies: its place expires after `PLACE_MS`, and with it a lock that was handed to it meanwhile.
 *   All places of that process expire together, so the waiters behind them are held up once.
 * - A reply is lost: the next request has the same holder, so it finds the lease or place of the lost one.
 * - The caller stops waiting (its time is over, its signal fired, the instance stops): a release under the holder's
 *   name gives back the place, or the lease that was handed over meanwhile.
 */
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Lease } from '../../core/locks/lease.js'
import type { TokenFloor } from '../../core/locks/token.js'
import type { Store } from '../../core/store.js'

/** The longest pause between two requests of a waiter. */
const POLL_MS = 250
/** How long a place in the waiter queue lasts after its waiter last asked. */
const PLACE_MS = 1_500

export interface LeaseRequest {
  readonly name: string
  readonly holder: string
  readonly ttlMs: number
  readonly permits: number
  readonly waitMs: number
  /** The holder is outside of this process, so this process's proof of life does not count for the lease. */
  readonly remote?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Granted {
  readonly lease: Lease
  /** When the call that acquired the lease was sent, by the monotonic clock. */
  readonly sentAt: number
}

export interface LeaseRequestsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly floor: TokenFloor
  readonly instance: () => string
}

export class LeaseRequests {
  readonly #options: LeaseRequestsOptions
  /** For each waiting holder, the function that ends its pause. */
  readonly #waiters = new Map<string, () => void>()
  /** Holders whose request is in flight, and whether a hint has named them meanwhile. */
  readonly #asking = new Map<string, boolean>()
  #isClosed = false

  constructor(options: LeaseRequestsOptions) {
    this.#options = options
  }

  /** Asks until the lease is granted or the time is over. */
  async acquire(request: LeaseRequest): Promise<Granted | undefined> {
    const { name, holder, waitMs, signal } = request
    const { store, clock } = this.#options
    const until = clock.monotonic() + waitMs
    // Opens the store first: trust in the lease starts when the request is sent, and must not include the time of the
    // opening.
    await store.open()
    for (;;) {
      if (this.#isClosed) {
        await store.leases.release({ name, holder })
        throw failure('NOT_RUNNING', `lock "${name}": this instance was stopped, and takes no more locks`)
      }
      const sentAt = clock.monotonic()
      const result = await this.#ask(request, until > sentAt)
      if (result.acquired && !signal?.aborted) return { lease: result.lease, sentAt }
      const leftMs = until - clock.monotonic()
      if (result.acquired || signal?.aborted || leftMs <= 0) {
        if (result.acquired || waitMs > 0) await store.leases.release({ name, holder })
        return undefined
      }
      if (result.wasNamed) continue
      await this.#pause(holder, Math.min(leftMs, POLL_MS, Math.max(result.until - result.now, 1)))
    }
  }

  /** Called on a hint that a lock was freed or handed over. The hint may name the new holder. */
  wake(holder?: string): void {
    if (holder === undefined) for (const endPause of [...this.#waiters.values()]) endPause()
    else if (this.#asking.has(holder)) this.#asking.set(holder, true)
    else this.#waiters.get(holder)?.()
  }

  /** Refuses all later requests, and those that wait now. */
  close(): void {
    this.#isClosed = true
    this.wake()
  }

  async #ask({ name, holder, ttlMs, permits, remote }: LeaseRequest, mayWait: boolean) {
    const { store, floor, instance } = this.#options
    this.#asking.set(holder, false)
    try {
      const result = await store.leases.acquire({
        ...{ name, holder, ttlMs, permits, floor: floor.value, instance: instance() },
        ...(remote ? { remote } : {}),
        ...(mayWait ? { waitMs: PLACE_MS } : {}),
      })
      floor.sawTime(result.now)
      if (result.acquired) floor.sawToken(result.lease.token)
      return { ...result, wasNamed: this.#asking.get(holder) === true }
    } finally {
      this.#asking.delete(holder)
    }
  }

  async #pause(holder: string, delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = () => {
        cancel()
        this.#waiters.delete(holder)
        resolve()
      }
      const cancel = this.#options.clock.after(delayMs, end)
      this.#waiters.set(holder, end)
    })
  }
}
