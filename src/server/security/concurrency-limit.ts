/** Limits how many open event streams and waiting requests one caller has, so that one caller cannot use up the service. */
import { problem } from '../http/problem.js'

export class ConcurrencyLimit {
  readonly #what: string
  readonly #most: number
  readonly #counts = new Map<string, number>()

  constructor(what: string, most: number) {
    this.#what = what
    this.#most = most
  }

  /** Counts one more until the returned function is called; calling that twice counts once. Throws at the limit. */
  enter(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0
    if (count >= this.#most) {
      throw problem(429, 'RATE_LIMITED', `this caller already has ${count} ${this.#what}`, {
        headers: { 'retry-after': '1' },
      })
    }
    this.#counts.set(caller, count + 1)
    let isIn = true
    return () => {
      if (!isIn) return
      isIn = false
      const left = (this.#counts.get(caller) ?? 1) - 1
      if (left === 0) this.#counts.delete(caller)
      else this.#counts.set(caller, left)
    }
  }
}

export interface ConcurrencyLimits {
  readonly streams: ConcurrencyLimit
  readonly waits: ConcurrencyLimit
  readonly operations: ConcurrencyLimit
}

export function concurrencyLimits(): ConcurrencyLimits {
  return {
    streams: new ConcurrencyLimit('event streams', 100),
    waits: new ConcurrencyLimit('waiting requests', 1_000),
    operations: new ConcurrencyLimit('operations', 4),
  }
}
