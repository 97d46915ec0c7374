/**
 * Calls that come while others are in flight share the next script: what a command costs on both sides is then paid once
 * for all of them. The first call that finds room goes at once, so sharing delays no call.
 *
 * A script that fails may have been carried out or not: all calls that shared it fail, as each would have alone.
 */

import { setImmediate } from 'node:timers'

const THIS_TURN = Promise.resolve()

interface Call<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Answers one result for each item, in order. */
export type Send<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>

export interface SharingOptions {
  /** How many calls share a script at the most. */
  readonly most: number
  /** How many scripts may be in flight. */
  readonly atOnce: number
}

export class CoalescedWrites<Item, Result> {
  readonly #send: Send<Item, Result>
  readonly #options: SharingOptions
  #waiting: Call<Item, Result>[] = []
  #inFlight = 0
  #starting = false

  constructor(send: Send<Item, Result>, options: SharingOptions) {
    this.#send = send
    this.#options = options
  }

  call(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      // Calls of the same turn join.
      if (this.#mayStart()) void THIS_TURN.then(this.#start)
    })
  }

  #mayStart(): boolean {
    if (this.#starting || this.#waiting.length === 0 || this.#inFlight >= this.#options.atOnce) return false
    this.#starting = true
    return true
  }

  /** The rest goes with the next turn of the event loop: Redis answers together what it has read together. */
  readonly #start = (): void => {
    this.#starting = false
    const calls = this.#waiting.splice(0, this.#options.most)
    this.#inFlight += 1
    this.#send(calls.map(({ item }) => item)).then(
      (results) => {
        calls.forEach(({ resolve }, at) => {
          resolve(results[at] as Result)
        })
        this.#ended()
      },
      (error) => {
        for (const { reject } of calls) reject(error)
        this.#ended()
      },
    )
    if (this.#mayStart()) setImmediate(this.#start)
  }

  readonly #ended = (): void => {
    this.#inFlight -= 1
    if (this.#mayStart()) this.#start()
  }
}
