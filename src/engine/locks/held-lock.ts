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
  /** Only the store knows whether the lock is still held: renew it at once. */
  inDoubt(lock: HeldLock): void
}

/** How long the store has to answer the renewal that decides after the event loop was blocked. */
const LAST_RENEWAL_MS = 1_000

/**
 * A lock that this process holds: how long its lease can be trusted, and the signal that fires when trust ends. As with
 * the beat, trust starts when the call was sent, by the local monotonic clock.
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
  /** Re-entrant acquisitions that share the lease: the last release gives it back. */
  acquisitions = 1
  /** The longest minimum hold that any of these acquisitions asked for. */
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

  /** Whether the lease is certain not to have expired. Correct even before a blocked event loop fires its timers. */
  get isTrusted(): boolean {
    return !this.isLost && this.#options.clock.monotonic() < this.#trustedUntil
  }

  get renewAt(): number {
    return this.#sentAt + this.#renewEveryMs
  }

  /** The lock as the beat thread can renew it. */
  get renewal(): RenewedLock {
    const { name, holder, token, ttlMs } = this
    return { name, holder, token, ttlMs, everyMs: this.#renewEveryMs, sentAt: this.#sentAt }
  }

  /** A heartbeat that is too slow for a TTL that `extend()` shortened is ignored. */
  get #renewEveryMs(): number {
    const quarterMs = this.#ttlMs * DEFAULTS.instance.heartbeatShare
    const heartbeatMs = this.#options.heartbeatMs ?? quarterMs
    return heartbeatMs * 3 <= this.#ttlMs ? heartbeatMs : quarterMs
  }

  get #trustedUntil(): number {
    return this.#sentAt + trustMs(this.#ttlMs)
  }

  /** The store extended the lease, by a call that was sent at this moment. A lock that counted as lost is trusted again. */
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

  /** The lock is released: no timer is left, and a renewal that is still in flight sets none. */
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
   * A late timer means that the loop was blocked: the beat thread may have renewed the lease, or it may be free to be
   * renewed.
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
