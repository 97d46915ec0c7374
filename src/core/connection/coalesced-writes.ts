/**
 * Coalesces calls into shared writes, as a group commit does: calls that arrive while a write is in flight go together in
 * the next one, as one transaction or script. A call that finds nothing in flight is sent at once.
 *
 *     call a        ──▶ write [a] ─────────▶
 *     calls b, c, d             wait ──────▶ write [b, c, d] ──▶ each call gets its own results
 *
 * - **One call is refused.** A shared write that fails because of one of its items has written nothing. Each call is then
 *   written alone, so only the one at fault fails.
 * - **The connection breaks.** What was written is unknown, so every call fails, as it would have alone.
 * - **Two calls about the same thing** never share a write, and keep their order: the second builds on the first.
 */
import { BelfryError } from '../errors.js'

interface Call<Item, Result> {
  readonly items: readonly Item[]
  readonly resolve: (results: readonly Result[]) => void
  readonly reject: (error: unknown) => void
}

export interface CoalescedWritesOptions<Item> {
  /** The name of what an item is about, where two calls may be about the same thing. */
  readonly nameOf?: (item: Item) => string
  /** How many writes may be in flight: more than one where a write may wait for a row lock. */
  readonly atOnce?: number
  /** The most items of a shared write. A call that has as many by itself is written alone, at once. */
  readonly maxItems?: number
}

export class CoalescedWrites<Item, Result> {
  readonly #write: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly #nameOf: ((item: Item) => string) | undefined
  readonly #atOnce: number
  readonly #maxItems: number
  #waiting: Call<Item, Result>[] = []
  #inFlight = 0

  constructor(
    write: (items: readonly Item[]) => Promise<readonly Result[]>,
    { nameOf, atOnce = 1, maxItems = 500 }: CoalescedWritesOptions<Item> = {},
  ) {
    this.#write = write
    this.#nameOf = nameOf
    this.#atOnce = atOnce
    this.#maxItems = maxItems
  }

  /** One result per item, in order. */
  write(items: readonly Item[]): Promise<readonly Result[]> {
    if (items.length >= this.#maxItems) return this.#write(items)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, resolve, reject })
      if (this.#inFlight < this.#atOnce) void this.#writeWaiting()
    })
  }

  async #writeWaiting(): Promise<void> {
    this.#inFlight += 1
    // Calls of the same microtask share the first write.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#writeTogether(this.#takeBatch())
    this.#inFlight -= 1
  }

  async #writeTogether(calls: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#write(calls.flatMap(({ items }) => items))
      let at = 0
      for (const { items, resolve } of calls) {
        resolve(results.slice(at, at + items.length))
        at += items.length
      }
    } catch (error) {
      if (calls.length > 1 && !isOfTheStore(error)) {
        for (const call of calls) await this.#writeTogether([call])
      } else for (const { reject } of calls) reject(error)
    }
  }

  /** The oldest waiting calls, as many as fit. A call stays behind when an earlier one, taken or not, has one of its names. */
  #takeBatch(): Call<Item, Result>[] {
    const batch: Call<Item, Result>[] = []
    const left: Call<Item, Result>[] = []
    const names = new Set<string>()
    let count = 0
    for (const call of this.#waiting) {
      const own = this.#nameOf === undefined ? [] : call.items.map(this.#nameOf)
      const fits = count === 0 || count + call.items.length <= this.#maxItems
      if (fits && !own.some((name) => names.has(name))) {
        batch.push(call)
        count += call.items.length
      } else left.push(call)
      for (const name of own) names.add(name)
    }
    this.#waiting = left
    return batch
  }
}

function isOfTheStore(error: unknown): boolean {
  return error instanceof BelfryError && error.code.startsWith('STORE_')
}
