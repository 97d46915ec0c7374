/**
 * Calls that come while a write is under way share the next one: one transaction, and one sync to disk, for all of them.
 * The first call that finds nothing under way goes at once, so sharing costs nobody any time.
 *
 * - A shared write that is refused because of what one of them asked for has written nothing: each is then done alone,
 *   and only the one that was wrong hears of it.
 * - A connection that breaks may have written: all of them are told that the store could not be reached, as each would
 *   have been alone.
 * - Two calls that speak of the same thing do not share: the second builds on what the first has made.
 * - Where one write may have to wait for somebody, several may be under way, so that it does not hold up all others.
 */
import { BelfryError } from '../../../core/errors.js'

interface Call<Item, Result> {
  readonly items: readonly Item[]
  readonly resolve: (results: readonly Result[]) => void
  readonly reject: (error: unknown) => void
}

/** How many items one shared write has at the most. A call with more than this is not held up by others. */
const MOST = 500

export interface SharedWritesOptions<Item> {
  /** Says what an item speaks of, where that matters. */
  readonly nameOf?: (item: Item) => string
  /** How many writes may be under way. */
  readonly atOnce?: number
}

export class SharedWrites<Item, Result> {
  readonly #write: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly #nameOf: ((item: Item) => string) | undefined
  readonly #atOnce: number
  #waiting: Call<Item, Result>[] = []
  #writing = 0

  constructor(
    write: (items: readonly Item[]) => Promise<readonly Result[]>,
    { nameOf, atOnce = 1 }: SharedWritesOptions<Item> = {},
  ) {
    this.#write = write
    this.#nameOf = nameOf
    this.#atOnce = atOnce
  }

  /** One result per item, in order. */
  write(items: readonly Item[]): Promise<readonly Result[]> {
    if (items.length >= MOST) return this.#write(items)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, resolve, reject })
      if (this.#writing < this.#atOnce) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#writing += 1
    // Calls of the same turn join.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#writeTogether(this.#next())
    this.#writing -= 1
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

  /** The oldest that wait, as many as fit, without any two that speak of the same. */
  #next(): Call<Item, Result>[] {
    const calls: Call<Item, Result>[] = []
    const left: Call<Item, Result>[] = []
    const names = new Set<string>()
    let count = 0
    for (const call of this.#waiting) {
      const own = this.#nameOf === undefined ? [] : call.items.map(this.#nameOf)
      const fits = count === 0 || count + call.items.length <= MOST
      if (fits && !own.some((name) => names.has(name))) {
        calls.push(call)
        count += call.items.length
      } else left.push(call)
      // Of those that stay, too: nobody overtakes what he builds on.
      for (const name of own) names.add(name)
    }
    this.#waiting = left
    return calls
  }
}

function isOfTheStore(error: unknown): boolean {
  return error instanceof BelfryError && error.code.startsWith('STORE_')
}
