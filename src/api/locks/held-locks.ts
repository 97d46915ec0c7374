/** The operations of callers on a lock that this process holds: extend, enter again, release. */
import type { Clock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import type { Store } from '../../core/store.js'
import { HeldLock } from '../../engine/locks/held-lock.js'
import type { LockKeeper } from '../../engine/locks/lock-keeper.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { located } from '../located.js'
import type { InFlight } from './in-flight.js'
import type { Granted } from './lease-requests.js'
import { Lock } from './lock.js'
import { checkTtl, type LockTerms } from './lock-options.js'

export interface HeldLocksOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly keeper: LockKeeper
  /** The releases that `close()` must wait for. */
  readonly inFlight: InFlight
}

export class HeldLocks {
  readonly #options: HeldLocksOptions
  #isClosed = false

  constructor(options: HeldLocksOptions) {
    this.#options = options
  }

  add({ lease, sentAt }: Granted, terms: LockTerms): Lock {
    const { clock, keeper } = this.#options
    const held = new HeldLock(lease, { ...terms, sentAt, clock, observer: keeper })
    keeper.keep(held)
    return new Lock(held, this)
  }

  /**
   * Enters a held lock again: the lease keeps its token, and may be extended but not shortened. A lost lock cannot be
   * entered, because the new lease would have another token than the work done before.
   */
  async enterAgain(held: HeldLock, ttlMs: number, minHoldMs: number): Promise<Lock | undefined> {
    // The acquisition counts before the store's answer, so that a release in the meantime is not the last one.
    held.acquisitions += 1
    let entered = false
    try {
      entered = await this.#extend(held, Math.max(held.ttlMs, ttlMs))
    } finally {
      if (!entered) await this.release(held)
    }
    if (!entered) return undefined
    held.minHoldMs = Math.max(held.minHoldMs, minHoldMs)
    return new Lock(held, this)
  }

  async extend(held: HeldLock, ttl: Duration): Promise<boolean> {
    return this.#extend(
      held,
      located(`lock "${held.name}"`, () => checkTtl(held.name, durationMs(ttl))),
    )
  }

  /**
   * The store, not the local clock, decides whether the lock was held until now. An expired lease that no other holder took
   * was never shared. And a process that was stopped past the TTL has not noticed yet that another holder took the lock.
   */
  async release(held: HeldLock): Promise<boolean> {
    const { store, keeper, inFlight } = this.#options
    held.acquisitions -= 1
    if (held.acquisitions > 0) return held.isTrusted || (!held.isLost && (await this.#extend(held, held.ttlMs)))
    keeper.drop(held)
    // `close()` has released the lock already, and the store is closed.
    if (this.#isClosed) return false
    const { name, holder, minHoldMs } = held
    const wasHeld = await inFlight.track(
      store.leases.release({ name, holder, ...(minHoldMs === 0 ? {} : { minHoldMs }) }),
    )
    if (!wasHeld) held.lose('its TTL passed and another holder took it, or it was reset')
    return wasHeld
  }

  /**
   * Releases a lock whose work is done. When the store does not answer, the lock stays taken until its TTL has passed, and
   * the local clock decides whether it was held until now.
   */
  async end(held: HeldLock): Promise<boolean> {
    const { isTrusted } = held
    try {
      return await this.release(held)
    } catch (error) {
      this.#options.log.warn(
        { lock: held.name, err: errorRecord(error) },
        'a lock could not be released: it stays taken until its TTL has passed',
      )
      if (!isTrusted) held.lose('its TTL passed, and the store did not answer')
      return isTrusted
    }
  }

  /** Releases all locks. A lock whose release does not reach the store ends by expiry. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { store, keeper } = this.#options
    await Promise.allSettled(keeper.close().map(({ name, holder }) => store.leases.release({ name, holder })))
  }

  async #extend(held: HeldLock, ttlMs: number): Promise<boolean> {
    const { store, clock, keeper } = this.#options
    const sentAt = clock.monotonic()
    const { name, holder, token } = held
    const [lease] = await store.leases.renew([{ name, holder, token, ttlMs }])
    if (lease === undefined) {
      held.lose('another holder has it, or it was reset')
      return false
    }
    held.extended(lease, ttlMs, sentAt)
    keeper.extended(held)
    return true
  }
}
