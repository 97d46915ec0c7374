/** How many of something that goes on one caller may have at a time: streams, waits. Nobody takes the room of all others. */
import { problem } from '../http/problem.js'

export class Crowd {
  readonly #what: string
  readonly #most: number
  readonly #counts = new Map<string, number>()

  constructor(what: string, most: number) {
    this.#what = what
    this.#most = most
  }

  /** The returned function leaves again; it may be called twice. */
  enter(who: string): () => void {
    const count = this.#counts.get(who) ?? 0
    if (count >= this.#most) {
      throw problem(429, 'RATE_LIMITED', `there are ${count} ${this.#what} of this caller already`, {
        headers: { 'retry-after': '1' },
      })
    }
    this.#counts.set(who, count + 1)
    let isIn = true
    return () => {
      if (!isIn) return
      isIn = false
      const left = (this.#counts.get(who) ?? 1) - 1
      if (left === 0) this.#counts.delete(who)
      else this.#counts.set(who, left)
    }
  }
}

/** What one service has of them. */
export interface Crowds {
  readonly streams: Crowd
  readonly waits: Crowd
}

export function crowds(): Crowds {
  return { streams: new Crowd('event streams', 100), waits: new Crowd('requests that wait', 1_000) }
}
