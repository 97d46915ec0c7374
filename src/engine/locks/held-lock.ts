import type { Clock } from '../../core/clock.js'
import { DEFAULTS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import type { Lease } from '../../core/locks/lease.js'
import type { RenewedLock } from '../instances/beat-messages.js'
import { HELD_UP_MS, trustMs } from '../instances/keeper.js'

export interface HeldLockOptions {
  readonly clock: Clock
  readonly observer: LockObserver
  readonly ttlMs: number
  /** When the call that acquired the lease was sent, by the monotonic clock. */
  readonly sentAt: number
  readonly minHoldMs: number
  readonly renew: boolean
  readonly heartbeatMs: number | undefined
}

export interface LockObserver {
  lost(lock: HeldLock): void
  /** Only the store knows whether the lock is still held, so it must be renewed at once. */
  inDoubt(lock: HeldLock): void
}

/** After a block one renewal decides whether the lock is still held. The store has this long to answer it. */
const LAST_RENEWAL_MS = 1_000

/**
 * A lock that this process holds. It knows how long the lease can be trusted, and its signal fires when trust ends. As
 * with the beat, trust starts when the call was sent, by the local monotonic clock.
 */
export class HeldLock {
  readonly name: string
  readonly holder: string
  readonly #options: HeldLockOptions
  #token = 0
  #ttlMs = 0
  #sentAt = 0
  /** Created on first use: most callers never read the signal. */
  #controller: AbortController | undefined
  #loss: Error | undefined
  #isReleased = false
  #cancelExpiry = () => {}
  /** How many re-entrant acquisitions share the lease. The last release gives it back. */
  acquisitions = 1
  /** The longest minimum hold among these acquisitions. */
  minHoldMs: number

  constructor(lease: Lease, options: HeldLockOptions) {
    this.name = lease.name
    this.holder = lease.holder
    this.minHoldMs = options.minHoldMs
    this.#options = options
    this.extended(lease, options.ttlMs, options.sentAt)
  }

  get token(): number {
    return this.#token
  }

  get ttlMs(): number {
    return this.#ttlMs
  }

  /** Whether the keeper renews it. */
  get renews(): boolean {
    return this.#options.renew
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#loss !== undefined) this.#controller.abort(this.#loss)
    }
    return this.#controller.signal
  }

  get isLost(): boolean {
    return this.#loss !== undefined
  }

  get loss(): Error | undefined {
    return this.#loss
  }

  /**
   * Whether the lease certainly has not expired. This compares clocks, because a blocked event loop fires the expiry
   * timer late.
   */
  get isTrusted(): boolean {
    return !this.isLost && this.#options.clock.monotonic() < this.#trustedUntil
  }

  get renewAt(): number {
    return this.#sentAt + this.#renewEveryMs
  }

  /** The lock as data, from which the beat thread can renew it. */
  get renewal(): RenewedLock {
    const { name, holder, token, ttlMs } = this
    return { name, holder, token, ttlMs, everyMs: this.#renewEveryMs, sentAt: this.#sentAt }
  }

  /** A quarter of the TTL replaces a heartbeat that is too slow for it: `extend()` may have shortened the TTL. */
  get #renewEveryMs(): number {
    const quarterMs = this.#ttlMs * DEFAULTS.instance.heartbeatShare
    const heartbeatMs = this.#options.heartbeatMs ?? quarterMs
    return heartbeatMs * 3 <= this.#ttlMs ? heartbeatMs : quarterMs
  }

  get #trustedUntil(): number {
    return this.#sentAt + trustMs(this.#ttlMs)
  }

  /** The store extended the lease, by a call that was sent at `sentAt`. A lock that counted as lost is trusted again. */
  extended(lease: Lease, ttlMs: number, sentAt: number): void {
    this.#token = lease.token
    this.#ttlMs = ttlMs
    this.#sentAt = sentAt
    if (this.isLost) {
      this.#loss = undefined
      this.#controller = undefined
    }
    if (!this.#isReleased) this.#watchExpiry()
  }

  lose(why: string): void {
    if (this.isLost) return
    this.#cancelExpiry()
    this.#loss = failure('LEASE_LOST', `the lock "${this.name}" was lost: ${why}`)
    this.#controller?.abort(this.#loss)
    this.#options.observer.lost(this)
  }

  /** Cancels the timers of a released lock. A renewal that is still in flight sets no new one. */
  forget(): void {
    this.#cancelExpiry()
    this.#isReleased = true
  }

  #watchExpiry(): void {
    const { clock } = this.#options
    const expiresAt = this.#trustedUntil
    this.#cancelExpiry()
    this.#cancelExpiry = clock.after(expiresAt - clock.monotonic(), () => this.#expired(clock.monotonic() - expiresAt))
  }

  /**
   * A late timer means that the loop was blocked. The beat thread may have renewed the lease, or the lease may have
   * expired with no other holder. So one more renewal decides.
   */
  #expired(lateMs: number): void {
    const { clock, observer, renew } = this.#options
    const lose = () => this.lose('it was not renewed in time')
    if (!renew || lateMs < HELD_UP_MS) {
      lose()
      return
    }
    this.#cancelExpiry = clock.after(LAST_RENEWAL_MS, lose)
    observer.inDoubt(this)
  }
}
