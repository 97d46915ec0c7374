/** Limits how many lines a second the imports of one caller take, all of its imports together. */
import { type Clock, sleep, systemClock } from '../../core/clock.js'
import { problem } from '../http/problem.js'
import type { Caller } from './caller.js'

const STEP_MS = 1_000
const MOST_CALLERS = 10_000

export class ImportPace {
  readonly #clock: Clock
  /** When the lines that each caller has sent so far are through. */
  readonly #freeAt = new Map<string, number>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Throws RATE_LIMITED while the lines of an earlier import are not through. */
  begin(caller: Caller): void {
    const waitMs = this.#waitMs(caller)
    const rate = caller.quota?.importRate
    if (rate === undefined || waitMs <= 0) return
    const seconds = String(Math.ceil(waitMs / 1_000))
    throw problem(
      429,
      'RATE_LIMITED',
      `imports of "${caller.name}" take ${rate} lines a second, and it has sent more`,
      {
        hint: `wait for ${seconds} s`,
        headers: { 'retry-after': seconds },
        members: { quota: rate },
      },
    )
  }

  /** Resolves when these lines are through. `check` is called each second, and may throw to end the wait. */
  async take(caller: Caller, lines: number, check: () => void): Promise<void> {
    const rate = caller.quota?.importRate
    if (rate === undefined) return
    const key = keyOf(caller)
    const start = Math.max(this.#freeAt.get(key) ?? 0, this.#clock.monotonic())
    this.#freeAt.delete(key)
    this.#freeAt.set(key, start + (lines / rate) * 1_000)
    for (const oldest of this.#freeAt.keys()) {
      if (this.#freeAt.size <= MOST_CALLERS) break
      this.#freeAt.delete(oldest)
    }
    for (let waitMs = this.#waitMs(caller); waitMs > 0; waitMs = this.#waitMs(caller)) {
      await sleep(this.#clock, Math.min(waitMs, STEP_MS))
      check()
    }
  }

  #waitMs(caller: Caller): number {
    return (this.#freeAt.get(keyOf(caller)) ?? 0) - this.#clock.monotonic()
  }
}

function keyOf({ prefix, name }: Caller): string {
  return JSON.stringify([prefix ?? null, prefix === undefined ? name : null])
}
