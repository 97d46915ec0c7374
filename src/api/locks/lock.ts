import { failure } from '../../core/errors.js'
import type { HeldLock } from '../../engine/locks/held-lock.js'
import type { Duration } from '../../time/duration.js'

/** The operations of `HeldLocks` that a lock calls. */
interface LockOperations {
  extend(held: HeldLock, ttl: Duration): Promise<boolean>
  release(held: HeldLock): Promise<boolean>
  end(held: HeldLock): Promise<boolean>
}

/** An acquired lock. `await using` releases it. */
export class Lock implements AsyncDisposable {
  readonly #held: HeldLock
  readonly #operations: LockOperations
  /** Set by the first release: later ones do nothing. */
  #released: Promise<boolean> | undefined

  constructor(held: HeldLock, operations: LockOperations) {
    this.#held = held
    this.#operations = operations
  }

  get name(): string {
    return this.#held.name
  }

  /**
   * The fencing token, which grows with every acquisition of this name. Pass it to systems that can refuse an older token.
   */
  get token(): number {
    return this.#held.token
  }

  /** Fires when the lease is lost; its reason says why. */
  get signal(): AbortSignal {
    return this.#held.signal
  }

  /** Makes the lease last this long from now. Returns false when another holder has the lock; then the signal has fired. */
  async extend(ttl: Duration): Promise<boolean> {
    return this.#released !== undefined ? false : this.#operations.extend(this.#held, ttl)
  }

  /**
   * Releases the lock. Returns true if no other holder can have had the lock since its acquisition, even if the TTL has
   * passed. Returns false if the lock was lost, or released before. A loss also fires the signal and the event `lock:lost`.
   */
  release(): Promise<boolean> {
    if (this.#released !== undefined) return Promise.resolve(false)
    this.#released = this.#operations.release(this.#held)
    return this.#released
  }

  /** Releases the lock unless it was released before. The signal, the event `lock:lost` and a warning report a loss. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal Releases the lock, and returns whether it was held until its release. */
  end(): Promise<boolean> {
    if (this.#released !== undefined) return this.#released.catch(() => !this.#held.isLost)
    this.#released = this.#operations.end(this.#held)
    return this.#released
  }

  /** @internal */
  reenter(): HeldLock {
    if (this.#released !== undefined) {
      throw failure('OPTION_INVALID', `the lock "${this.name}" was released: it cannot be entered again`)
    }
    return this.#held
  }
}
