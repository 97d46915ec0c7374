/**
 * Limits how many handlers of this process hold a connection at a time. Each transaction holds one until its callback
 * returns. If they held all connections of the pool, beats and settlements could not get through, and every lease would
 * be lost.
 */
import { failure } from '../../../core/errors.js'
import { unlessAborted } from '../../../core/unless-aborted.js'
import type { PgPool } from '../connection/driver.js'

/** The size of a `pg` pool without the option `max`. */
const DEFAULT_POOL = 10
/** Connections that are kept free for beats and settlements. */
const RESERVED = 2

export class TransactionSlots {
  readonly #pool: PgPool
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(pool: PgPool) {
    this.#pool = pool
  }

  /**
   * Waits for a free slot, first come, first served. Returns a function that frees the slot; only its first call
   * counts.
   */
  async take(signal: AbortSignal | undefined): Promise<() => void> {
    signal?.throwIfAborted()
    if (this.#taken < this.#limit()) this.#taken += 1
    else await this.#turn(signal)
    let isFree = false
    return () => {
      if (!isFree) this.#free()
      isFree = true
    }
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    let begin = () => {}
    const turn = new Promise<void>((resolve) => {
      begin = resolve
    })
    this.#waiting.push(begin)
    try {
      await unlessAborted(turn, signal)
    } catch (error) {
      const place = this.#waiting.indexOf(begin)
      // If this handler is no longer waiting, it was given a slot at the moment of the abort.
      if (place === -1) this.#free()
      else this.#waiting.splice(place, 1)
      throw error
    }
  }

  /** Hands the slot to the handler that has waited longest, so that no other can take it first. */
  #free(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #limit(): number {
    const max = this.#pool.options?.max ?? DEFAULT_POOL
    if (max > 1) return Math.max(1, max - RESERVED)
    throw failure(
      'OPTION_INVALID',
      `transaction() needs a pool of at least 2 connections, and this one has ${max}: the handler holds one, and Belfry's beats need another`,
    )
  }
}
