/**
 * Fencing tokens: numbers that only grow for a name, and therefore order the attempts that held it.
 *
 * Three things push a token up, so that losing any two of them cannot bring an old one back: the last token kept with
 * the name (rows outlive release), the store's clock in microseconds (which survives the loss of the row), and the
 * floor, the highest token or time that the asking client has seen (which survives a failover to a store that lost the
 * last writes and whose clock is behind). Microseconds since 1970 fit into 2^53 until the year 2255.
 */
export function nextToken(last: number, storeNow: number, floor: number): number {
  return Math.max(last + 1, Math.floor(storeNow * 1_000), floor)
}

/** What a client has seen: sent with each acquire and claim, raised by each answer. */
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
