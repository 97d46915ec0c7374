/** The calls that are still unanswered, so that `close()` can wait for them. */
export class InFlight {
  readonly #calls = new Set<Promise<unknown>>()

  async track<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
    }
  }

  async idle(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
  }
}
