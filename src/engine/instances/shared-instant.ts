const NEVER = -(2n ** 62n)

/** An instant of the process's monotonic clock that all threads can read, and that only moves forward. */
export class SharedInstant {
  readonly memory: SharedArrayBuffer
  readonly #micros: BigInt64Array

  /** With `memory`, this object shares the instant of another thread. */
  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(8)
    this.#micros = new BigInt64Array(this.memory)
    if (memory === undefined) this.#micros[0] = NEVER
  }

  get at(): number {
    const micros = Atomics.load(this.#micros, 0)
    return micros === NEVER ? Number.NEGATIVE_INFINITY : Number(micros) / 1_000
  }

  /** Only one thread may write. */
  moveTo(at: number): void {
    const micros = BigInt(Math.floor(at * 1_000))
    if (micros > Atomics.load(this.#micros, 0)) Atomics.store(this.#micros, 0, micros)
  }
}
