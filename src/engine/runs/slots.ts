/** The instance's concurrency, shared by its dispatchers of jobs. */
export class Slots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  get free(): number {
    return this.#free
  }

  take(count: number): void {
    this.#free -= count
  }

  /** Gives slots back and wakes the dispatchers that wait for one, except the giver. */
  give(count: number, giver?: () => void): void {
    this.#free += count
    for (const wake of [...this.#waiting]) {
      if (wake !== giver && this.#waiting.delete(wake)) wake()
    }
  }

  /** Calls `wake` once when a slot is given back. */
  want(wake: () => void): void {
    this.#waiting.add(wake)
  }

  unwant(wake: () => void): void {
    this.#waiting.delete(wake)
  }
}
