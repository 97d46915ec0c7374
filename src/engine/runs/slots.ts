/** The attempts of jobs that an instance may have at a time, shared by the dispatchers that start them. */
export class Slots {
  #free: number
  readonly #wanting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  get free(): number {
    return this.#free
  }

  /** Reserves as many as a claim may bring: what one claim may bring, another must not ask for. */
  take(count: number): void {
    this.#free -= count
  }

  /** Gives slots back, and wakes those who want one, except the one who gives. */
  give(count: number, giver?: () => void): void {
    this.#free += count
    for (const wake of [...this.#wanting]) {
      if (wake !== giver && this.#wanting.delete(wake)) wake()
    }
  }

  /** Calls back once when a slot is given back: there may be runs that only lack room. */
  want(wake: () => void): void {
    this.#wanting.add(wake)
  }

  unwant(wake: () => void): void {
    this.#wanting.delete(wake)
  }
}
