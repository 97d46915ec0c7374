import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Lease } from '../../core/lease.js'
import type { RenewedLock } from '../instances/beat-messages.js'
import { HELD_UP_MS, trustMs } from '../instances/keeper.js'

/** How a lease was obtained: for how long, by a call sent when, and whether and how often it is renewed. */
export interface Grant {
  readonly ttlMs: number
  readonly sentAt: number
  readonly renew: boolean
  readonly heartbeatMs: number | undefined
}

/** Who looks after a lock. */
export interface LockObserver {
  lost(lock: HeldLock): void
  /** Only the store can say whether it is still held: it is to be renewed at once. */
  inDoubt(lock: HeldLock): void
}

const NOTHING = () => {}
/** How long the store has to answer the renewal that decides after a block. */
const LAST_RENEWAL_MS = 1_000

/**
 * A lock that this process holds: how long it may be trusted, and the signal that fires when it no longer may.
 * As with the beat, trust is counted from when the call was sent, by the local monotonic clock.
 */
export class HeldLock {
  readonly name: string
  readonly holder: string
  /** Whether it is renewed by itself. */
  readonly renews: boolean
  readonly #clock: Clock
  readonly #observer: LockObserver
  readonly #heartbeatMs: number | undefined
  #token: number
  #ttlMs: number
  #sentAt = 0
  /** Set when the lock is watched. */
  #watched = false
  /** Made when somebody asks for the signal: most never do. */
  #controller: AbortController | undefined
  #loss: Error | undefined
  #cancelExpiry = NOTHING
  /** How many acquisitions share it: it is given back with the last. */
  acquisitions = 1
  /** Whether the keeper sees to its renewals. */
  isRenewed = false
  /** The longest minimum hold that any of them asked for. */
  minHoldMs = 0

  constructor(lease: Lease, { ttlMs, sentAt, renew, heartbeatMs }: Grant, clock: Clock, observer: LockObserver) {
    this.name = lease.name
    this.#heartbeatMs = heartbeatMs
    this.holder = lease.holder
    this.renews = renew
    this.#token = lease.token
    this.#ttlMs = ttlMs
    this.#clock = clock
    this.#observer = observer
    this.extended(lease, ttlMs, sentAt)
  }

  get token(): number {
    return this.#token
  }

  get ttlMs(): number {
    return this.#ttlMs
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

  /** Why it was lost. */
  get loss(): Error | undefined {
    return this.#loss
  }

  /** Whether the lease certainly has not run out, by the local clock. Holds even before a blocked event loop fires timers. */
  get isTrusted(): boolean {
    return !this.isLost && this.#trustedMs > 0
  }

  /** When the next renewal should be sent. A heartbeat too slow for a TTL that was shortened gives way. */
  get renewAt(): number {
    return this.#sentAt + this.#renewEveryMs
  }

  /** The lock as another thread can renew it. */
  get renewal(): RenewedLock {
    const { name, holder, token, ttlMs } = this
    return { name, holder, token, ttlMs, everyMs: this.#renewEveryMs, sentAt: this.#sentAt }
  }

  get #renewEveryMs(): number {
    const quarterMs = this.#ttlMs / 4
    const heartbeatMs = this.#heartbeatMs ?? quarterMs
    return heartbeatMs * 3 <= this.#ttlMs ? heartbeatMs : quarterMs
  }

  /** The store extended the lease, by a call that was sent at this moment. One that was given up is trusted again. */
  extended(lease: Lease, ttlMs: number, sentAt: number): void {
    this.#token = lease.token
    this.#ttlMs = ttlMs
    this.#sentAt = sentAt
    if (this.isLost) {
      this.#loss = undefined
      this.#controller = undefined
    }
    if (this.#watched) this.#setExpiry()
  }

  /** From now on it is lost by itself when it is not extended in time; at once if the process was stopped past that time. */
  watch(): void {
    if (this.#watched) return
    this.#watched = true
    this.#setExpiry()
  }

  #setExpiry(): void {
    this.#cancelExpiry()
    const expiresAt = this.#sentAt + trustMs(this.#ttlMs)
    const leftMs = expiresAt - this.#clock.monotonic()
    const expired = () => this.#expired(this.#clock.monotonic() - expiresAt)
    if (leftMs > 0) this.#cancelExpiry = this.#clock.after(leftMs, expired)
    else expired()
  }

  /** After a block it may have been renewed by another thread, or be free to be renewed still. */
  #expired(lateMs: number): void {
    const late = () => this.lose('it was not renewed in time')
    if (this.renews && lateMs >= HELD_UP_MS) {
      this.#cancelExpiry = this.#clock.after(LAST_RENEWAL_MS, late)
      this.#observer.inDoubt(this)
    } else late()
  }

  get #trustedMs(): number {
    return this.#sentAt + trustMs(this.#ttlMs) - this.#clock.monotonic()
  }

  lose(why: string): void {
    if (this.isLost) return
    this.#cancelExpiry()
    this.#loss = failure('LEASE_LOST', `the lock "${this.name}" was lost: ${why}`)
    this.#controller?.abort(this.#loss)
    this.#observer.lost(this)
  }

  /** Given back: nothing of it is left behind, whatever is still under way for it. */
  forget(): void {
    this.#cancelExpiry()
    this.#watched = false
  }
}
