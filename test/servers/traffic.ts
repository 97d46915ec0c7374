import { setImmediate } from 'node:timers/promises'

/** Counts requests in flight, so that virtual time can wait for their answers. */
export class Traffic {
  #inFlight = 0
  #waiting: (() => void)[] = []

  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#inFlight += 1
    try {
      return await work()
    } finally {
      this.#inFlight -= 1
      if (this.#inFlight === 0) for (const resolve of this.#waiting.splice(0)) resolve()
    }
  }

  /** Resolves when nothing is in flight, and the answers have led to no further request. */
  rest = async (): Promise<void> => {
    for (;;) {
      await setImmediate()
      if (this.#inFlight === 0) return
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}
