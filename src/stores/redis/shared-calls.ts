/**
 * Calls that come while others are under way share the next script: what a command costs on both sides is then paid once
 * for all of them. The first call that finds room goes at once, so sharing costs nobody any time.
 *
 * A script that fails may have been carried out or not: all who shared it are told so, as each would have been alone.
 */

/** How many go into one script at the most. */
const MOST = 200

interface Call<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export class SharedCalls<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly #atOnce: number
  #waiting: Call<Item, Result>[] = []
  #underWay = 0

  /** Answers one result for each item, in order. `atOnce` scripts may be under way. */
  constructor(send: (items: readonly Item[]) => Promise<readonly Result[]>, atOnce: number) {
    this.#send = send
    this.#atOnce = atOnce
  }

  call(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#underWay < this.#atOnce) void this.#sendAll()
    })
  }

  async #sendAll(): Promise<void> {
    this.#underWay += 1
    // Calls of the same turn join.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#sendTogether(this.#waiting.splice(0, MOST))
    this.#underWay -= 1
  }

  async #sendTogether(calls: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#send(calls.map(({ item }) => item))
      for (const [at, { resolve }] of calls.entries()) resolve(results[at] as Result)
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
}
