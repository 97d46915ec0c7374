import type { Clock } from '../core/clock.js'
import { failure } from '../core/errors.js'
import type { Lease } from '../core/lease.js'
import { trustMs } from './keeper.js'

/** How a lease was obtained: for how long, by a call sent when, and whether and how often it is renewed. */
export interface Grant {
  readonly ttlMs: number
  readonly sentAt: number
  readonly renew: boolean
  readonly heartbeatMs: number | undefined
}

const NOTHING = () => {}

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
  readonly #onLost: (lock: HeldLock) => void
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

  constructor(
    lease: Lease,
    { ttlMs, sentAt, renew, heartbeatMs }: Grant,
    clock: Clock,
    onLost: (lock: HeldLock) => void,
  ) {
    this.name = lease.name
    this.#heartbeatMs = heartbeatMs
    this.holder = lease.holder
    this.renews = renew
    this.#token = lease.token
    this.#ttlMs = ttlMs
    this.#clock = clock
    this.#onLost = onLost
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
    const quarterMs = this.#ttlMs / 4
    const heartbeatMs = this.#heartbeatMs ?? quarterMs
    return this.#sentAt + (heartbeatMs * 3 <= this.#ttlMs ? heartbeatMs : quarterMs)
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
    const trustedMs = this.#trustedMs
    const late = () => this.lose('it was not renewed in time')
    if (trustedMs > 0) this.#cancelExpiry = this.#clock.after(trustedMs, late)
    else late()
  }

  get #trustedMs(): number {
    return this.#sentAt + trustMs(this.#ttlMs) - this.#clock.monotonic()
  }

  lose(why: string): void {
    if (this.isLost) return
    this.#cancelExpiry()
    this.#loss = failure('LEASE_LOST', `the lock "${this.name}" was lost: ${why}`)
    this.#controller?.abort(this.#loss)
    this.#onLost(this)
  }

  /** Given back: nothing of it is left behind, whatever is still under way for it. */
  forget(): void {
    this.#cancelExpiry()
    this.#watched = false
  }
}
