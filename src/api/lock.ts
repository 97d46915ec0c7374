import { failure } from '../core/errors.js'
import type { HeldLock } from '../engine/held-lock.js'
import type { Duration } from '../time/duration.js'

/** Who knows how to keep and give back what a lock stands for. */
interface Keeper {
  extend(held: HeldLock, ttl: Duration): Promise<boolean>
  release(held: HeldLock): Promise<boolean>
}

/** A lock that was acquired. `await using` gives it back. */
export class Lock implements AsyncDisposable {
  readonly #held: HeldLock
  readonly #keeper: Keeper
  #released = false

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
    return this.#released ? false : this.#keeper.extend(this.#held, ttl)
  }

  /** False when it was lost before. */
  release(): Promise<boolean> {
    if (this.#released) return Promise.resolve(false)
    this.#released = true
    return this.#keeper.release(this.#held)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal */
  reenter(): HeldLock {
    if (this.#released)
      throw failure('OPTION_INVALID', `the lock "${this.name}" was released: it cannot be entered again`)
    return this.#held
  }
}
