import { failure } from '../../../core/errors.js'
import type { PgPool } from '../connection/driver.js'

/** What `pg` makes its pools with. */
const USUAL_POOL = 10
/** Beats and settlements must not wait for handlers: these connections are left to them. */
const LEFT_OVER = 2

/**
 * How many handlers of this process may hold a connection at a time. Each of their transactions holds one until its
 * callback returns, so as many as the pool is large would keep the beat from getting through, and lose everything.
 */
export class TransactionSlots {
  readonly #pool: PgPool
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(pool: PgPool) {
    this.#pool = pool
  }

  /** Resolves when there is a connection to spare, with what frees the slot. Throws the signal's reason if that is first. */
  async take(signal: AbortSignal | undefined): Promise<() => void> {
    if (this.#taken >= this.#limit()) await this.#wait(signal)
    else this.#taken += 1
    let free = () => this.#handOn()
    const once = () => {
      free()
      free = () => {}
    }
    if (signal?.aborted) once()
    signal?.throwIfAborted()
    return once
  }

  /** To whoever waits longest, so that nobody can come in between. */
  #handOn(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #limit(): number {
    const max = this.#pool.options?.max ?? USUAL_POOL
    if (max > 1) return Math.max(1, max - LEFT_OVER)
    throw failure(
      'OPTION_INVALID',
      `transaction() needs a pool of at least 2 connections, and this one has ${max}: the handler holds one, and Belfry's beats need another`,
    )
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const go = () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      this.#waiting.push(go)
    })
  }
}
