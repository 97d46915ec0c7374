import { failure } from '../../core/errors.js'
import type { HeldLock } from '../../engine/locks/held-lock.js'
import type { Duration } from '../../time/duration.js'

/** Who knows how to keep and give back what a lock stands for. */
interface Keeper {
  extend(held: HeldLock, ttl: Duration): Promise<boolean>
  release(held: HeldLock): Promise<boolean>
  end(held: HeldLock): Promise<boolean>
}

/** A lock that was acquired. `await using` gives it back. */
export class Lock implements AsyncDisposable {
  readonly #held: HeldLock
  readonly #keeper: Keeper
  /** The answer to its release, once that was asked for. */
  #released: Promise<boolean> | undefined

  constructor(held: HeldLock, keeper: Keeper) {
    this.#held = held
    this.#keeper = keeper
  }

  get name(): string {
    return this.#held.name
  }

  /** Grows with every acquisition of this name: pass it to systems that can refuse an older one. */
  get token(): number {
    return this.#held.token
  }

  /** Fires when the lease is lost; its reason says why. */
  get signal(): AbortSignal {
    return this.#held.signal
  }

  /** Makes the lease last this long from now. False when somebody else has it; then the signal has fired. */
  async extend(ttl: Duration): Promise<boolean> {
    return this.#released !== undefined ? false : this.#keeper.extend(this.#held, ttl)
  }

  /**
   * Releases the lock. True when no other holder can have had it since it was acquired, even if its TTL has passed. False
   * when it was lost, or released before; a loss also fires the signal and the event `lock:lost`.
   */
  release(): Promise<boolean> {
    if (this.#released !== undefined) return Promise.resolve(false)
    this.#released = this.#keeper.release(this.#held)
    return this.#released
  }

  /** Releases the lock unless that was done before. A loss is told by the signal, the event `lock:lost` and a warning. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal Whether it was held to its end, which is now unless it was released before. */
  end(): Promise<boolean> {
    if (this.#released !== undefined) return this.#released.catch(() => !this.#held.isLost)
    this.#released = this.#keeper.end(this.#held)
    return this.#released
  }

  /** @internal */
  reenter(): HeldLock {
    if (this.#released !== undefined)
      throw failure('OPTION_INVALID', `the lock "${this.name}" was released: it cannot be entered again`)
    return this.#held
  }
}
