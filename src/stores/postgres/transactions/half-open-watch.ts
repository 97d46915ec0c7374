/**
 * Detects a half-open connection whose statements have no time limit: a handler's statement may run for an hour. When
 * an answer is missing for a while, this asks the server, over another connection, what the backend is doing:
 *
 * - The backend is executing the statement: keep waiting, and ask again later.
 * - It is not, because it has answered, never received the statement, or has ended. The answer may still be on its way,
 *   so the server is asked once more, half a second later. If the backend's state is the same and the answer is still
 *   missing, the network has swallowed the statement or its answer.
 */
import type { Clock } from '../../../core/clock.js'

export interface HalfOpenWatchOptions {
  readonly clock: Clock
  /** How long an answer may be missing before the server is asked. */
  readonly limitMs: () => number
  /** Returns the backend's state; undefined while it is executing the statement. */
  readonly look: () => Promise<string | undefined>
  /** Called at most once, when the connection is half-open. */
  readonly onSilent: () => void
}

/** Long enough for an answer that is on its way, and short compared with any lease. */
const LOOK_AGAIN_MS = 500

export class HalfOpenWatch {
  readonly #options: HalfOpenWatchOptions
  #inFlight = 0
  /** Counts statements, answers and the end. Each of these invalidates a look that began before it. */
  #events = 0
  #seen: string | undefined
  #cancel = () => {}

  constructor(options: HalfOpenWatchOptions) {
    this.#options = options
  }

  /** Watches until the answer has arrived. */
  during<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return answer.finally(this.sent())
  }

  /** A statement is in flight until the returned function is called. */
  sent(): () => void {
    this.#inFlight += 1
    if (this.#inFlight === 1) this.#restart()
    return () => {
      this.#inFlight -= 1
      this.#restart()
    }
  }

  end(): void {
    this.#inFlight = Number.NEGATIVE_INFINITY
    this.#restart()
  }

  #restart(): void {
    this.#events += 1
    this.#seen = undefined
    this.#cancel()
    if (this.#inFlight > 0) this.#lookIn(this.#options.limitMs())
  }

  #lookIn(delayMs: number): void {
    this.#cancel = this.#options.clock.after(delayMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    const events = this.#events
    const { look, limitMs, onSilent } = this.#options
    // A failed look proves nothing. If the server stays unreachable, the lease expires.
    const seen = await look().catch(() => undefined)
    if (events !== this.#events) return
    if (seen !== undefined && seen === this.#seen) {
      this.end()
      return onSilent()
    }
    this.#seen = seen
    this.#lookIn(seen === undefined ? limitMs() : LOOK_AGAIN_MS)
  }
}
