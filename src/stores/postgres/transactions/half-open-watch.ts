/**
 * Notices a half-open connection on which statements may take any time. A handler's statement may run for an hour, so it
 * has no limit of its own. Instead, when an answer is missing for a while, the server is asked over another connection
 * what the backend does:
 *
 * - It works on the statement: wait on, and ask again later.
 * - It does not, because it has answered, never got the statement, or is gone: the answer may be on its way, so it is asked
 *   once more, half a second later. If the backend has not changed and the answer is still missing, the network has
 *   swallowed the statement or its answer.
 */
import type { Clock } from '../../../core/clock.js'

export interface HalfOpenWatchOptions {
  readonly clock: Clock
  /** How long an answer may be missing before the server is asked. */
  readonly limitMs: () => number
  /** The backend's state; undefined while it works on the statement. */
  readonly look: () => Promise<string | undefined>
  /** Called at most once. */
  readonly onSilent: () => void
}

/** Long enough for an answer on its way, and short beside any lease. */
const LOOK_AGAIN_MS = 500

export class HalfOpenWatch {
  readonly #options: HalfOpenWatchOptions
  #inFlight = 0
  /** Counts statements, answers and the end, each of which makes an earlier look meaningless. */
  #events = 0
  #seen: string | undefined
  #cancel = () => {}

  constructor(options: HalfOpenWatchOptions) {
    this.#options = options
  }

  /** Watches until the answer is there. */
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
    // A server that cannot be asked proves nothing: if that lasts, the lease runs out.
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
