/**
 * Calls that come while others are under way share the next script: what a command costs on both sides is then paid once
 * for all of them. The first call that finds room goes at once, so sharing costs nobody any time. Where there is a shorter
 * way for one alone, a call that finds nothing under way takes it.
 *
 * A script that fails may have been carried out or not: all who shared it are told so, as each would have been alone.
 */

import { setImmediate } from 'node:timers'

const THIS_TURN = Promise.resolve()

interface Call<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Answers one result for each item, in order. One that takes longer than the others keeps nobody waiting. */
export type Send<Item, Result> = (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>

export interface SharingOptions {
  /** How many calls share a script at the most. */
  readonly most: number
  /** How many scripts may be under way. */
  readonly atOnce: number
}

export class SharedCalls<Item, Result> {
  readonly #send: Send<Item, Result>
  readonly #options: SharingOptions
  readonly #sendOne: ((item: Item) => Promise<Result>) | undefined
  #waiting: Call<Item, Result>[] = []
  #underWay = 0
  #starting = false

  constructor(send: Send<Item, Result>, options: SharingOptions, sendOne?: (item: Item) => Promise<Result>) {
    this.#send = send
    this.#options = options
    this.#sendOne = sendOne
  }

  call(item: Item): Promise<Result> {
    if (this.#sendOne !== undefined && this.#underWay === 0 && this.#waiting.length === 0) {
      this.#underWay = 1
      const answer = this.#sendOne(item)
      answer.then(this.#ended, this.#ended)
      return answer
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      // Calls of the same turn join.
      if (this.#mayStart()) void THIS_TURN.then(this.#start)
    })
  }

  #mayStart(): boolean {
    if (this.#starting || this.#waiting.length === 0 || this.#underWay >= this.#options.atOnce) return false
    this.#starting = true
    return true
  }

  /**
   * What is left goes with the next turn: the server answers what came by itself by itself, and works on the rest while
   * the first are already at work here.
   */
  readonly #start = (): void => {
    this.#starting = false
    const calls = this.#waiting.splice(0, this.#options.most)
    this.#underWay += 1
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
    this.#underWay -= 1
    if (this.#mayStart()) this.#start()
  }
}
