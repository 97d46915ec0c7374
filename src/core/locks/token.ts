/**
 * Fencing tokens: numbers that only grow for each name, and so order the attempts that held it.
 *
 * A new token is at least as high as three values. Each of them survives a loss that the others do not:
 *
 * - the last token of the name plus one, because the token is kept after release: survives a clock that was set back;
 * - the store's clock in microseconds: survives the loss of the name's row;
 * - the floor, the highest token or time that the client has seen: survives a failover to a store that lost the last
 *   writes and whose clock is behind.
 *
 * Microseconds since 1970 fit into 2^53 until the year 2255.
 */
export function nextToken(last: number, storeNow: number, floor: number): number {
  return Math.max(last + 1, Math.floor(storeNow * 1_000), floor)
}

/** The highest token or time that this client has seen. It is sent with each acquire and claim, and raised by each answer. */
export class TokenFloor {
  #floor = 0

  get value(): number {
    return this.#floor
  }

  sawToken(token: number): void {
    this.#floor = Math.max(this.#floor, token + 1)
  }

  sawTime(storeNow: number): void {
    this.#floor = Math.max(this.#floor, Math.floor(storeNow * 1_000))
  }
}
