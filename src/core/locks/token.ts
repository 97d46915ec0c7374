import type { Clock } from '../clock.js'
import { StoreTime } from '../connection/store-time.js'

/**
 * Fencing tokens: numbers that only grow for each name, and so order the attempts that held it.
 *
 * A new token is at least as high as three values. Each of them survives a loss that the others do not:
 *
 * - the last token of the name plus one, because the token is kept after release: survives a clock that was set back;
 * - the store's clock in microseconds: survives the loss of the name's row;
 * - the floor, the highest token or store time that the client knows of (`TokenFloor`): survives a failover to a store that
 *   lost the last writes and whose clock is behind.
 *
 * Microseconds since 1970 fit into 2^53 until the year 2255.
 */
export function nextToken(last: number, storeNow: number, floor: number): number {
  return Math.max(last + 1, Math.floor(storeNow * 1_000), floor)
}

/**
 * The floor that a client sends with each acquire and claim: the highest token that it has seen, or the store's time if that
 * is higher. Each answer raises it, and so does the time that passes: a client that was idle has not seen the latest tokens.
 */
export class TokenFloor {
  readonly #time: StoreTime
  #token = 0

  constructor(clock: Clock) {
    this.#time = new StoreTime(clock)
  }

  get value(): number {
    return this.#time.floor(this.#token)
  }

  sawToken(token: number): void {
    this.#token = Math.max(this.#token, token + 1)
  }

  sawTime(storeNow: number): void {
    this.#time.heard(storeNow)
  }
}
